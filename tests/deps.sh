#!/bin/sh
# Installs the system packages that are missing, with apt-get (Debian 12 names). DEV=1 adds what
# `make tidy`, `make fuzz` and `make recheck` need. Says what it does; does nothing when all is there.
# Without root it prints the command to run, and fails only when something is missing that the build
# needs.
# shellcheck disable=SC2086 # The lists are split into words on purpose.
set -eu

# Needed to build and to run the tests.
REQUIRED="gcc libc6-dev libz3-dev libprotobuf-c-dev protobuf-c-compiler libxxhash-dev libyaml-dev
    zlib1g-dev libdnnl-dev libopenblas-dev libcmocka-dev"
# The build does without libonnx-dev and what it needs, and without Open MPI, and single tests without
# the rest, each with a reason: shapes by ONNX' own library, work shared over machines, the ONNX
# conformance cases, headers in C++, the firmware in an emulated microcontroller, the example on
# XNNPACK, and the drawings of reports.
OPTIONAL="g++ libonnx-dev libprotobuf-dev libopenmpi-dev openmpi-bin libonnx-testdata python3-onnx
    gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm libxnnpack-dev libpthreadpool-dev pkg-config
    graphviz"
DEVELOPMENT="clang clang-format clang-tidy cppcheck shellcheck cvc5 python3-venv dpkg-dev lintian qemu-user gnuplot-nox chromium xxhash
    gcc-arm-linux-gnueabihf libc6-dev-armhf-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu
    libc6-dev-riscv64-cross gcc-riscv64-unknown-elf gcc-s390x-linux-gnu libc6-dev-s390x-cross"

missing_of() {
    for package in "$@"; do
        case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true) in
        installed) ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "$@"
}

[ -z "${DEV:-}" ] || OPTIONAL="$OPTIONAL $DEVELOPMENT"
if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
    echo "deps: no apt-get here; install what these Debian packages hold, then run make without deps:"
    echo "deps:  " $REQUIRED
    exit 1
fi
required=$(missing_of $REQUIRED)
optional=$(missing_of $OPTIONAL)
if [ -z "$required$optional" ]; then
    echo "deps: nothing is missing"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    [ -z "$required" ] || echo "deps: the build needs: $required"
    [ -z "$optional" ] || echo "deps: some tests need: $optional"
    echo "deps: run: sudo apt-get install -y --no-install-recommends $required$optional"
    [ -z "$required" ]
    exit
fi

echo "deps: installing $required$optional"
apt-get update -q || echo "deps: the package lists could not be refreshed"
if [ -n "$required" ] && ! install $required; then
    echo "deps: the build needs what could not be installed: $required"
    exit 1
fi
# One by one when not all can be had together: what is left out is named here and by its tests.
if [ -n "$optional" ] && ! install $optional; then
    for package in $optional; do
        install "$package" || echo "deps: $package could not be installed; its tests will be skipped"
    done
fi
