#!/bin/sh
# cost/rival/python.sh with a stand-in for Python: what two tests want at once is installed once, and what
# cannot be installed is not there.
. tests/support/tap.sh

BIN=$FOLDER/bin
mkdir "$BIN"
# `python3 -m venv FOLDER` makes a Python that imports what its pip has installed; pip takes its time.
cat > "$BIN/python3" << 'END'
#!/bin/sh
case "$1 $2" in
"-m venv")
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
    ;;
"-m pip")
    echo "$*" >> "$RECORD/installed"
    sleep 1
    [ ! -e "$RECORD/offline" ] && touch "$0.whole"
    ;;
-c*) [ -e "$0.whole" ] ;;
esac
END
chmod +x "$BIN/python3"
find_python() { RECORD=$FOLDER PATH=$BIN:$PATH sh cost/rival/python.sh "$FOLDER/venv"; }

installs_once() {
    find_python > "$FOLDER/one" &
    first=$!
    find_python > "$FOLDER/two" && wait $first && [ "$(wc -l < "$FOLDER/installed")" = 1 ] &&
        [ "$(cat "$FOLDER/one")" = "$FOLDER/venv/bin/python" ] && cmp "$FOLDER/one" "$FOLDER/two"
}
installs_no_more() { find_python > "$FOLDER/one" && [ "$(wc -l < "$FOLDER/installed")" = 1 ]; }
does_without() {
    rm -rf "$FOLDER/venv" && touch "$FOLDER/offline"
    find_python > "$FOLDER/one"
    [ "$(cat "$FOLDER/one")" != "$FOLDER/venv/bin/python" ] && [ -s "$FOLDER/one" ]
}

check "two at once install once" installs_once
check "what is there is not installed" installs_no_more
check "offline, another or none" does_without
finish
