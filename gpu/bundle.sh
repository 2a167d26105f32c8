#!/bin/sh
# What `make gpu-check` needs besides gcc, the CUDA toolkit and cuDNN, from this machine's packages:
# bundle.sh GENERATED FOLDER. The folder can be copied to any x86-64 Linux of the same age or newer.
set -eu

generated=$1
folder=$2

# The file that gcc would link or include.
library=$(gcc -print-file-name=libprotobuf-c.a)
header() { printf '#include <%s>\n' "$1" | gcc -E -x c - | sed -n 's/^# 1 "\(\/[^"]*'"$(basename "$1")"'\)".*/\1/p' | head -n 1; }

if [ ! -f "$library" ]; then
    echo "gpu-bundle: libprotobuf-c.a is not installed (libprotobuf-c-dev)" >&2
    exit 1
fi
rm -rf "$folder"
mkdir -p "$folder/include/protobuf-c" "$folder/lib" "$folder/generated"
for name in protobuf-c/protobuf-c.h xxhash.h; do
    path=$(header "$name")
    if [ -z "$path" ]; then
        echo "gpu-bundle: $name is not installed" >&2
        exit 1
    fi
    cp "$path" "$folder/include/$name"
    [ "$name" != xxhash.h ] || [ ! -f "$(dirname "$path")/xxh3.h" ] || cp "$(dirname "$path")/xxh3.h" "$folder/include/"
done
cp "$library" "$folder/lib/"
cp -r "$generated"/graph "$folder/generated/"
# The build compares: generated code of other sources is no use.
find graph -name '*.proto' | while read -r proto; do
    mkdir -p "$folder/$(dirname "$proto")"
    cp "$proto" "$folder/$proto"
done
echo "gpu-bundle: $folder is complete; copy it along with the sources"
