"""Holds ONNX files against each other, or against outputs that were computed elsewhere, with tools that
are not ours.

    check_onnx.py pairs LIST      of lines ORIGINAL, VARIANT, TOLERANCE
    check_onnx.py outputs LIST    of lines BASE, TOLERANCE

What a line says is separated by tabs; tolerances are of the largest absolute element of each output.
A variant must pass onnx.checker with shape inference, keep the original's inputs and outputs, and,
where onnxruntime can run the original on this machine, give the same outputs for random inputs.
BASE.onnx is a model, BASE.in0, BASE.in1... are its inputs and BASE.out0... outputs that onnxruntime
must give: raw row-major tensors of the types that the model declares. Prints one line per failure
and at the end "<lines> pairs (or outputs), <compared> compared, <failed> failed"; the exit status is 1 when
any failed.
"""

import sys
from pathlib import Path

import numpy as np
import onnx

try:
    import onnxruntime
except ImportError:  # the checker alone
    onnxruntime = None

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cost" / "rival"))
from inputs import TYPES, make_inputs  # noqa: E402

def open_session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_original(path):
    """Inputs and outputs; None when onnxruntime cannot run the model or is not deterministic."""
    if onnxruntime is None:
        return None
    try:
        session = open_session(path)
        inputs = make_inputs(session, 7)
        first = session.run(None, inputs)
        second = session.run(None, inputs)
    except Exception:  # whatever it cannot do: kinds of input, operators, shapes
        return None
    if not all(isinstance(a, np.ndarray) and same(a, b, 0.0) for a, b in zip(first, second)):
        return None
    return inputs, first


def same(a, b, tolerance):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    a = a.astype(np.float64)
    b = b.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    if not finite.any():
        return True
    scale = max(1e-30, np.abs(a[finite]).max())
    return np.abs(a[finite] - b[finite]).max() <= tolerance * scale


def ports(model):
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [port.name for port in model.graph.input if port.name not in weights]
    return inputs, [port.name for port in model.graph.output]


def check_pair(original, variant, tolerance):
    """A text, or None; and whether outputs were compared."""
    model = onnx.load(original)
    written = onnx.load(variant)
    if ports(model) != ports(written):
        return "inputs or outputs changed", False
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return None, False  # an example that the checker itself does not accept
    try:
        onnx.checker.check_model(written, full_check=True)
    except Exception as fault:
        return "checker: " + str(fault).strip().replace("\n", " ")[:300], False
    reference = run_original(original)
    if reference is None:
        return None, False
    inputs, expected = reference
    try:
        outputs = open_session(variant).run(None, inputs)
    except Exception as fault:
        return "onnxruntime: " + str(fault).strip().replace("\n", " ")[:300], True
    for i, (a, b) in enumerate(zip(expected, outputs)):
        if not same(a, b, tolerance):
            difference = np.abs(a.astype(np.float64) - b).max() if a.shape == b.shape else "shape"
            return f"output {i} differs: {difference}", True
    return None, True


def check_outputs(base, tolerance):
    session = open_session(base + ".onnx")
    inputs = {}
    for k, port in enumerate(session.get_inputs()):
        data = np.fromfile(f"{base}.in{k}", dtype=TYPES[port.type])
        inputs[port.name] = data.reshape(port.shape)
    for k, output in enumerate(session.run(None, inputs)):
        computed = np.fromfile(f"{base}.out{k}", dtype=output.dtype)
        if computed.size != output.size:
            return f"output {k} has {computed.size} elements instead of {output.size}", True
        if not same(output, computed.reshape(output.shape), tolerance):
            difference = np.abs(output - computed.reshape(output.shape)).max()
            return f"output {k} differs by {difference}, largest {np.abs(output).max()}", True
    return None, True


def main():
    if onnxruntime is not None:
        onnxruntime.set_default_logger_severity(4)
    kind, path = sys.argv[1:]
    check = {"pairs": check_pair, "outputs": check_outputs}[kind]
    lines = compared = failed = 0
    with open(path, encoding="utf-8") as rows:
        for row in rows:
            *files, tolerance = row.rstrip("\n").split("\t")
            fault, ran = check(*files, float(tolerance))
            lines += 1
            compared += ran
            if fault is not None:
                failed += 1
                print(f"{' -> '.join(files)}: {fault}")
    print(f"{lines} {kind}, {compared} compared, {failed} failed")
    return 1 if failed > 0 or lines == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
