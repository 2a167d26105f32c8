#!/bin/sh
# Packs what `make install` puts into a folder as a Debian package.
#
#   GRAFT=out/package/graft VERSION=0.1.0 sh packaging/deb.sh out/package/deb out/graft_0.1.0_amd64.deb
#
# DEBFULLNAME and DEBEMAIL name the maintainer, as for Debian's own tools.
# The folder is made anew. Needs dpkg-deb and dpkg-shlibdeps (package dpkg-dev). The same program gives
# the same bytes: times are those of CHANGELOG.md's last commit, or SOURCE_DATE_EPOCH.
set -eu
umask 022 # Whatever that of the user is: files of a package are for everybody.

: "${GRAFT:?}" "${VERSION:?}"
folder=$1
package=$2
MAINTAINER="${DEBFULLNAME:-The Graft authors} <${DEBEMAIL:-graft@example.org}>"
for tool in dpkg-deb dpkg-shlibdeps strip; do
    command -v $tool > /dev/null || { echo "make deb needs $tool (packages dpkg-dev, binutils)" >&2; exit 77; }
done
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct -- CHANGELOG.md 2> /dev/null || echo 0)}"
export SOURCE_DATE_EPOCH
architecture=$(dpkg --print-architecture)
root=$folder/graft
doc=$root/usr/share/doc/graft

rm -rf "$folder"
mkdir -p "$folder/debian"
strip --remove-section=.comment --remove-section=.note -o "$folder/program" "$GRAFT"
GRAFT=$folder/program PREFIX=/usr DESTDIR=$root CUDA_LIBRARY='' MPI_LIBRARY='' RUN_LIBRARY='' sh packaging/install.sh install > /dev/null

# Files of Debian's, in place of ours.
gzip -9n "$root/usr/share/man/man1/graft.1"
rm "$doc/LICENSE"
mv "$doc/CHANGELOG.md" "$doc/NEWS"
printf 'graft (%s) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- %s  %s\n' \
    "$VERSION" "$MAINTAINER" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" > "$doc/changelog"
gzip -9n "$doc/changelog" "$doc/NEWS"
cp "$doc/changelog.gz" "$folder/debian"
gzip -d "$folder/debian/changelog.gz"
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
    printf 'Upstream-Name: graft\nSource: the Graft project\n\nFiles: *\n'
    sed -n 's/^\(Copyright .*\)/\1/p' LICENSE | sed 's/^Copyright (c) /Copyright: /; 1q'
    printf 'License: Expat\n\nLicense: Expat\n'
    sed '1,/^Copyright/d' LICENSE | sed '1{/^$/d}; s/^$/./; s/^/ /'
} > "$doc/copyright"

# A device is for those who have its runtime: the package does without Python.
install -d "$root/usr/share/lintian/overrides"
echo 'graft: python3-script-but-no-python3-dep' > "$root/usr/share/lintian/overrides/graft"
chmod 644 "$root/usr/share/lintian/overrides/graft"

# What the program links with.
printf 'Source: graft\n\nPackage: graft\nArchitecture: any\n' > "$folder/debian/control"
depends=$(cd "$folder" && dpkg-shlibdeps -O graft/usr/bin/graft 2> debian/warnings | sed 's/^shlibs:Depends=//') ||
    { cat "$folder/debian/warnings" >&2; exit 1; }

mkdir "$root/DEBIAN"
cat > "$root/DEBIAN/control" << END
Package: graft
Version: $VERSION
Architecture: $architecture
Maintainer: $MAINTAINER
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Suggests: python3
Section: science
Priority: optional
Description: proved graph substitutions for neural networks
 Graft rewrites ONNX models by graph substitutions that are proved for all
 sizes with Z3, chosen by measured costs, and proves or refutes rules that
 you write. It also trains policies that are emitted as one C99 header,
 which needs no allocator and no operating system.
 .
 The program is built for x86-64-v3 (processors with AVX2) and says so on
 older ones.
END
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum) > "$root/DEBIAN/md5sums"
find "$root" -type d -exec chmod 755 {} +
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" > /dev/null
echo "$package"
