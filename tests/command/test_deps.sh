#!/bin/sh
# `make deps` with stand-ins for the package manager: what it asks for, says and returns.
. tests/support/tap.sh

BIN=$FOLDER/bin
mkdir "$BIN"
# $FOLDER/missing lists what is not installed, $FOLDER/refused what cannot be; asked is the record.
cat > "$BIN/dpkg-query" << 'END'
#!/bin/sh
for last in "$@"; do :; done
if grep -qx -- "$last" "$FOLDER/missing"; then exit 1; else printf installed; fi
END
cat > "$BIN/apt-get" << 'END'
#!/bin/sh
echo "$*" >> "$FOLDER/asked"
for word in "$@"; do
    if grep -qx -- "$word" "$FOLDER/refused"; then exit 100; fi
done
END
cat > "$BIN/id" << 'END'
#!/bin/sh
cat "$FOLDER/user"
END
chmod +x "$BIN"/*
export FOLDER

# machine USER "MISSING..." "REFUSED..."
machine() {
    echo "$1" > "$FOLDER/user"
    echo "$2" | tr ' ' '\n' > "$FOLDER/missing"
    echo "$3" | tr ' ' '\n' > "$FOLDER/refused"
    : > "$FOLDER/asked"
}
deps() { PATH=$BIN:$PATH gives "$1" sh tests/deps.sh; }
says() { grep -qF -- "$1" "$FOLDER/out"; }
asks() { grep -q -- "$1" "$FOLDER/asked"; }

nothing_missing() { machine 0 '' '' && deps 0 && says "nothing is missing" && [ ! -s "$FOLDER/asked" ]; }
installs() {
    machine 0 'libz3-dev qemu-system-arm' '' && deps 0 &&
        says "installing libz3-dev qemu-system-arm" && asks '^update' &&
        asks 'install .* libz3-dev$' && asks 'install .* qemu-system-arm$'
}
required_refused() {
    machine 0 'libz3-dev' 'libz3-dev' && deps 1 && says "could not be installed: libz3-dev"
}
optional_refused() {
    machine 0 'qemu-system-arm libonnx-testdata' 'qemu-system-arm' && deps 0 &&
        says "qemu-system-arm could not be installed; its tests will be skipped" &&
        asks 'install .* libonnx-testdata$'
}
offline() { machine 0 'qemu-system-arm' 'update qemu-system-arm' && deps 0; }
user_required() {
    machine 1000 'libz3-dev qemu-system-arm' '' && deps 1 && [ ! -s "$FOLDER/asked" ] &&
        says "run: sudo apt-get install -y --no-install-recommends libz3-dev qemu-system-arm"
}
user_optional() { machine 1000 'qemu-system-arm' '' && deps 0 && says "sudo apt-get install"; }
developer() {
    machine 0 'clang-tidy' '' && deps 0 && says "nothing is missing" &&
        DEV=1 deps 0 && asks 'install .* clang-tidy$'
}

check "nothing is missing" nothing_missing
check "missing packages are installed" installs
check "a required package cannot be had" required_refused
check "an optional package cannot be had" optional_refused
check "offline, with only optional ones missing" offline
check "without root, a required one missing" user_required
check "without root, an optional one missing" user_optional
check "what only developers need" developer
finish
