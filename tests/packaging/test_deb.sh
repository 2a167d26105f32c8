#!/bin/sh
# The Debian package: the same bytes twice, whatever the umask; lintian has nothing against it, what is in
# it runs, and it lacks no dependency.
. tests/support/tap.sh

if [ "$MODE" != release ] || ! command -v dpkg-shlibdeps > /dev/null || ! command -v strip > /dev/null; then
    skip "the Debian package" "not a release build, or no dpkg-shlibdeps here (package dpkg-dev)"
    finish
    exit
fi
MAKE="make --no-print-directory OUT=$(dirname "$GRAFT") MODE=$MODE"
device=$(sed -n '2s/.*"device": *"\([^"]*\)".*/\1/p' rules/costs/intel-xeon-6-207-avx512.costs)
PROGRAM=$FOLDER/root/usr/bin/graft
mkdir "$FOLDER/a" "$FOLDER/b" "$FOLDER/elsewhere"
printf 'rules:\n  - name: twice\n    source: relu(relu(a))\n    target: relu(a)\n' > "$FOLDER/elsewhere/my.yaml"

# shellcheck disable=SC2086 # Words.
builds() {
    gives 0 $MAKE deb-pack PACKAGES="$FOLDER/a" && (umask 077 && gives 0 $MAKE deb-pack PACKAGES="$FOLDER/b") &&
        cmp "$FOLDER"/a/*.deb "$FOLDER"/b/*.deb && dpkg-deb -x "$FOLDER"/a/*.deb "$FOLDER/root"
}
is_content() { lintian --fail-on error,warning "$FOLDER"/a/*.deb > "$FOLDER/lintian" 2>&1 || { cat "$FOLDER/lintian"; return 1; }; }
depends() {
    dpkg-deb -f "$FOLDER"/a/*.deb Depends > "$FOLDER/depends"
    for library in libc6 libz3-4 libdnnl2 libprotobuf-c1 libopenblas0; do
        grep -qw "$library" "$FOLDER/depends" || { cat "$FOLDER/depends"; return 1; }
    done
}
has_version() { [ "graft $(dpkg-deb -f "$FOLDER"/a/*.deb Version)" = "$("$GRAFT" version)" ]; }
away() { (cd "$FOLDER/elsewhere" && env XDG_CACHE_HOME="$FOLDER/cache" "$PROGRAM" "$@"); }
runs() {
    away rules --count | grep -q '^all ' && away verify my.yaml && away optimize autoencoder out.onnx --device "$device" &&
        [ -s "$FOLDER/elsewhere/out.onnx" ]
}

check "builds, and the same bytes twice" builds
check "has the version" has_version
check "depends on the libraries" depends
check "what is in it runs" runs
if command -v lintian > /dev/null; then
    check "lintian has nothing against it" is_content
else
    skip "lintian has nothing against it" "no lintian here"
fi
finish
