#!/bin/sh
# The device that counts instructions under QEMU, and what it leaves when its tools are not there.
. tests/support/tap.sh

RECORDED=rules/costs/cortex-m4.costs
value_of() { sed "s/.*\"$1\": *\([^,}]*\).*/\1/" "$2" | tail -1; }

# Counted now or recorded then: with the compiler of then the same within a tenth, for the kernels are compiled with
# the engine's header, whose changes move their loops.
counts_as_recorded() {
    gives 0 "$GRAFT" --quiet measure autoencoder --device cortex-m4 --database "$FOLDER/now.costs" --json &&
        python3 - "$FOLDER/now.costs" "$RECORDED" <<-'END'
	import json, sys
	def read(path):
	    entries = [json.loads(line) for line in open(path)][1:]
	    return {(e["library"], e["signature"]): e["median_ns"] for e in entries if e.get("source") == "measured"}
	now, then = read(sys.argv[1]), read(sys.argv[2])
	assert len(now) >= 5, now
	if {library for library, _ in now} & {library for library, _ in then}:
	    for key, counted in now.items():
	        assert abs(counted / then[key] - 1) < 0.1, (key, counted, then[key])
	END
}
says_what_it_lacks() {
    printf '%s\n' '{"id": 1, "ask": "hello", "protocol": 1}' \
        '{"id": 2, "ask": "time", "operator": "relu", "model": "none.onnx", "weights": []}' |
        devices/cortex-m4 > "$FOLDER/answers" && grep -q '"id": 2, "unsupported": ".*none.onnx' "$FOLDER/answers"
}
# Only python3 is there: what was recorded is taken, and nothing is estimated.
takes_what_is_recorded() {
    mkdir "$FOLDER/bin" && ln -s "$(command -v env)" "$FOLDER/bin" &&
        ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$FOLDER/bin/python3" &&
        gives 0 env PATH="$FOLDER/bin" "$GRAFT" measure dscnn --device cortex-m4 --database "$FOLDER/none.costs" --json &&
        grep -q "gcc-arm-none-eabi, qemu-system-arm); its recorded costs are taken" "$FOLDER/err" &&
        [ "$(value_of measured_now "$FOLDER/out")" = 0 ] && [ "$(value_of estimated "$FOLDER/out")" = 0 ]
}

if command -v arm-none-eabi-gcc > /dev/null && command -v qemu-system-arm > /dev/null; then
    check "counts as recorded" counts_as_recorded
    check "says what it lacks" says_what_it_lacks
else
    skip "counts as recorded" "the device needs packages gcc-arm-none-eabi and qemu-system-arm"
fi
check "takes what is recorded" takes_what_is_recorded
finish
