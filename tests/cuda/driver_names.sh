#!/bin/sh
# driver_names.sh CUDA_H: C source with every function that a driver exports, for driver.c's library.
# They all say that they are done, but for launches, which are refused.
set -eu

cat << 'END'
int driver_succeed(void);
int driver_refuse(void);
int driver_succeed(void) { return 0; }
int driver_refuse(void) { return 801; } /* CUDA_ERROR_NOT_SUPPORTED */
END
grep -oE '\<cu[A-Z][A-Za-z0-9_]+' "$1" | sort -u | awk '{
    printf "int %s(void) __attribute__((weak, alias(\"%s\")));\n", $0, /Launch/ ? "driver_refuse" : "driver_succeed"
}'
