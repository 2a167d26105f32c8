#!/bin/sh
# Installs Graft below $DESTDIR$PREFIX, or removes what this version installs there.
#
#   GRAFT=out/release/graft VERSION=0.1.0 PREFIX=/usr/local DESTDIR= sh packaging/install.sh install
#   VERSION=0.1.0 PREFIX=/usr/local DESTDIR= sh packaging/install.sh uninstall
#
# CUDA_LIBRARY is the back end for NVIDIA GPUs, where there is one, MPI_LIBRARY what calls MPI,
# RUN_LIBRARY the executor for other programs, XNNPACK_DEVICE what devices/xnnpack starts; what is not
# set is left out. The program finds its data in ../share/graft from where it lies, so that the tree
# may be moved as a whole. What is removed is what would be installed; folders go when they are
# Graft's own and empty.
set -eu

: "${PREFIX:?}" "${VERSION:?}" "${DESTDIR:=}" "${GRAFT:=}" "${CUDA_LIBRARY:=}" "${MPI_LIBRARY:=}" "${RUN_LIBRARY:=}" \
    "${XNNPACK_DEVICE:=}"
ROOT=$DESTDIR$PREFIX
case $PREFIX in
/*) ;;
*)
    echo "install.sh: PREFIX is '$PREFIX': it has to begin with /" >&2
    exit 2
    ;;
esac
OWN="include/graft share/graft share/doc/graft lib/graft"

# Data: where it is found in share/graft is where it is in the checkout.
data_files() {
    ls rules/graft.rules rules/simplify.rules rules/onnxruntime.yaml rules/onnxruntime.rules rules/derivations.txt \
        rules/families/*.yaml rules/deep/*.yaml rules/costs/*.costs train/settings.yaml emit/firmware/rewrite.c
    find rules/taso rules/policies rules/samples -type f 2> /dev/null || true
}

# Lines "MODE SOURCE TARGET"; sources that are made here begin with a +. A link has its text for a source.
files() {
    echo "755 $GRAFT bin/graft"
    echo "644 $CUDA_LIBRARY lib/graft/graft-cuda.so"
    echo "644 $MPI_LIBRARY lib/graft/graft-mpi.so"
    echo "755 $XNNPACK_DEVICE lib/graft/xnnpack"
    if [ -n "$RUN_LIBRARY" ]; then
        echo "644 $RUN_LIBRARY lib/${RUN_LIBRARY##*/}"
        echo "link ${RUN_LIBRARY##*/} lib/libgraft_run.so"
        echo "644 +graft-run.pc share/pkgconfig/graft-run.pc"
    fi
    find include/graft -type f | while read -r file; do echo "644 $file $file"; done
    data_files | while read -r file; do echo "644 $file share/graft/$file"; done
    for file in devices/*; do echo "755 $file share/graft/$file"; done
    for file in LICENSE README.md CHANGELOG.md; do echo "644 $file share/doc/graft/$file"; done
    echo "644 +graft.pc share/pkgconfig/graft.pc"
    echo "644 +man share/man/man1/graft.1"
    echo "644 +completion share/bash-completion/completions/graft"
}

make_file() {
    case $1 in
    +*.pc) sed "s|@VERSION@|$VERSION|" "packaging/${1#+}.in" ;;
    +man) "$GRAFT" help --man ;;
    +completion) "$GRAFT" help --completion ;;
    esac
}

install_files() {
    made=$(mktemp)
    trap 'rm -f "$made"' EXIT
    files | while read -r mode source target; do
        [ -n "$target" ] || continue # No such library: the line has two words.
        case $source in
        +*)
            make_file "$source" > "$made"
            source=$made
            ;;
        esac
        if [ "$mode" = link ]; then
            ln -sfn "$source" "$ROOT/$target"
        else
            install -D -m "$mode" "$source" "$ROOT/$target"
        fi
    done
    echo "installed in $ROOT"
}

uninstall_files() {
    GRAFT=graft CUDA_LIBRARY=graft-cuda.so MPI_LIBRARY=graft-mpi.so XNNPACK_DEVICE=device
    files | while read -r _ _ target; do
        rm -f "$ROOT/$target"
    done
    for folder in $OWN; do
        [ ! -d "$ROOT/$folder" ] || find "$ROOT/$folder" -depth -type d -empty -delete
    done
    echo "removed from $ROOT"
}

case ${1:-} in
install) install_files ;;
uninstall) uninstall_files ;;
*)
    echo "usage: sh packaging/install.sh install|uninstall" >&2
    exit 2
    ;;
esac
