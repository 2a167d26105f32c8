#!/bin/sh
# test_random.sh with two thousand other graphs.
GRAPHS=1001,2000 exec sh tests/interop/test_random.sh
