"""Holds outputs that were computed elsewhere against those of onnxruntime.

    compare_outputs.py LIST

Each line of LIST: a base name and a tolerance, separated by a tab. BASE.onnx is the model, BASE.in0,
BASE.in1... are its inputs and BASE.out0... the outputs to check: raw row-major tensors of the types
that the model declares. The tolerance is of the largest absolute element of each output. Prints one
line per failure and at the end "<models> models, <failed> failed"; the exit status is 1 when any
failed.
"""

import sys

import numpy as np
import onnxruntime

from check_onnx import TYPES, open_session, same


def find_fault(base, tolerance):
    session = open_session(base + ".onnx")
    inputs = {}
    for k, port in enumerate(session.get_inputs()):
        data = np.fromfile(f"{base}.in{k}", dtype=TYPES[port.type])
        inputs[port.name] = data.reshape(port.shape)
    for k, output in enumerate(session.run(None, inputs)):
        computed = np.fromfile(f"{base}.out{k}", dtype=output.dtype)
        if computed.size != output.size:
            return f"output {k} has {computed.size} elements instead of {output.size}"
        if not same(output, computed.reshape(output.shape), tolerance):
            difference = np.abs(output - computed.reshape(output.shape)).max()
            return f"output {k} differs by {difference}, largest {np.abs(output).max()}"
    return None


def main():
    onnxruntime.set_default_logger_severity(4)
    models = failed = 0
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            base, tolerance = line.rstrip("\n").split("\t")
            fault = find_fault(base, float(tolerance))
            models += 1
            if fault is not None:
                failed += 1
                print(f"{base}: {fault}")
    print(f"{models} models, {failed} failed")
    return 1 if failed > 0 or models == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
