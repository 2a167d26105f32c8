"""Holds what optimisers made of a model against the model, and times all of them in onnxruntime.

    measure.py [--untimed] NAME ORIGINAL.onnx KIND=FILE.onnx...

NAME is a line of models.txt. Prints one line of JSON: by kind what is wrong with the file, if anything,
which fused operators onnxruntime does not make of it any more, and the ratio of the medians of the
original's time and the file's.

Each round times every session once, in an order drawn anew; sessions are opened anew for each quarter of
the rounds, because where their memory lies counts too. "copy" is the original once more, which tells the
noise: where it comes out more than 1 % off, or a file more than 2 %, up to twice as many rounds again
are run, and all of them count.
"""

import collections
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

from models import read_list

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8, "tensor(bool)": np.bool_,
}
FUSED = ("Gelu", "LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization")
QUARTERS = 4
ROUNDS = 24  # of which a quarter per opening of the sessions
ROUNDS_LEAST = 16
TURN_NS = 20e6  # what one turn of a session takes at least
SECONDS_MOST = 120.0  # for ROUNDS; fewer are run otherwise
NOISE_MOST = 0.01
TOLERANCE = 1e-3  # of the largest magnitude, or ten times what the runtime's own optimisations change


# ------------------------------------------------------------------------------------------ running

def open_session(path, optimised, optimised_path=""):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = optimised_path
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = (onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL if optimised
                                        else onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def make_inputs(entry, session, which):
    """Random inputs of the entry's shapes number `which`."""
    random = np.random.default_rng(which)
    inputs = {}
    for port in session.get_inputs():
        shape = entry.shapes.get(port.name, port.shape)
        kind = TYPES[port.type]
        if isinstance(shape, int):
            inputs[port.name] = np.asarray(shape, kind)
            continue
        if port.name in entry.shapes:
            shape = shape[min(which, len(shape) - 1)]
        value = (random.standard_normal(shape) if np.issubdtype(kind, np.floating)
                 else random.integers(0, 2, shape))
        inputs[port.name] = np.asarray(value).astype(kind)
    return inputs


# ---------------------------------------------------------------------------------------- comparing

def difference(a, b):
    """The largest, of the largest magnitude; infinite where shapes, types or unusual values differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or \
            not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    return float(np.abs(a[finite] - b[finite]).max() / max(1e-30, np.abs(a[finite]).max()))


def worst_difference(left, right):
    return max((difference(a, b) for a, b in zip(left, right)), default=0.0)


def ports(model, of):
    weights = {tensor.name for tensor in model.graph.initializer}
    return [(port.name, port.type.tensor_type.elem_type,
             [(size.dim_param if size.dim_value <= 0 else size.dim_value)
              for size in port.type.tensor_type.shape.dim])
            for port in getattr(model.graph, of) if port.name not in weights]


def find_axes_fault(model, written):
    """Inputs stand as they did; of outputs, what was open is open."""
    if ports(model, "input") != ports(written, "input"):
        return "inputs changed"
    before, after = ports(model, "output"), ports(written, "output")
    if [port[:2] for port in before] != [port[:2] for port in after]:
        return "outputs changed"
    for (name, _, old), (_, _, new) in zip(before, after):
        for i, size in enumerate(new):
            if isinstance(size, int) and i < len(old) and not isinstance(old[i], int):
                return f"output {name} had an open axis {i}, now {size}"
    return None


def find_output_fault(entry, original, path):
    """At three sets of sizes where axes are open."""
    plain, fused, variant = (open_session(original, False), open_session(original, True),
                             open_session(path, False))
    for which in range(3 if entry.shapes else 1):
        inputs = make_inputs(entry, plain, which)
        want = plain.run(None, inputs)
        tolerance = max(TOLERANCE, 10 * worst_difference(want, fused.run(None, inputs)))
        try:
            found = worst_difference(want, variant.run(None, inputs))
        except Exception as fault:
            return f"shapes {which}: " + str(fault).replace("\n", " ")[:200]
        if not found <= tolerance:
            return f"shapes {which}: outputs differ by {found:.2g}"
    return None


def find_fault(entry, original, path):
    model, written = onnx.load(original), onnx.load(path)
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as fault:
        try:
            onnx.checker.check_model(original, full_check=True)
            return "checker: " + str(fault).replace("\n", " ")[:200]
        except Exception:
            pass  # It does not accept the original either.
    fault = find_axes_fault(model, written)
    if fault is None:
        try:
            fault = find_output_fault(entry, original, path)
        except Exception as error:
            fault = "onnxruntime: " + str(error).replace("\n", " ")[:200]
    return fault


def describe_node(node):
    """All of it but where its inputs come from: readers of nodes that compute the same, or what is known
    beforehand, are wired to one of these or to a constant."""
    rest = onnx.NodeProto()
    rest.CopyFrom(node)
    rest.ClearField("input")
    return rest.SerializeToString(), len(node.input)


def find_changed_nodes(original, path):
    """How many nodes of the file are not the original's, byte for byte."""
    before = {describe_node(node) for node in onnx.load(original).graph.node}
    return sum(describe_node(node) not in before for node in onnx.load(path).graph.node)


# ------------------------------------------------------------------------------------------- fusing

def list_kernels(path):
    """What onnxruntime runs in the end: by node, the operator with the activation that it took in, and
    whether it was made of several."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "optimised.onnx")
        open_session(path, True, out)
        nodes = onnx.load(out, load_external_data=False).graph.node
    kernels = []
    for node in nodes:
        activation = next((item.s.decode() for item in node.attribute if item.name == "activation"), "")
        fused = node.domain == "com.microsoft" or node.op_type in FUSED or activation != ""
        kernels.append((node.op_type + activation, fused))
    return kernels


def find_lost(before, after):
    """Kinds of fused operators of which there are fewer: 'Gelu 12 -> 9'."""
    counts = [collections.Counter(kind for kind, fused in kernels if fused)
              for kernels in (before, after)]
    return [f"{kind} {count} -> {counts[1][kind]}" for kind, count in sorted(counts[0].items())
            if counts[1][kind] < count]


# ------------------------------------------------------------------------------------------- timing

def time_turn(session, inputs, runs):
    start = time.thread_time_ns()
    for _ in range(runs):
        session.run(None, inputs)
    return (time.thread_time_ns() - start) / runs


def run_rounds(entry, files, random, times):
    """ROUNDS rounds more; fewer where they would take too long."""
    rounds = ROUNDS // QUARTERS
    for _ in range(QUARTERS):
        names = list(files)
        random.shuffle(names)
        sessions = {name: open_session(files[name], True) for name in names}
        inputs = make_inputs(entry, sessions["original"], 0)
        once = {name: time_turn(sessions[name], inputs, 2) for name in names}
        runs = max(1, int(TURN_NS / once["original"]))
        seconds = rounds * QUARTERS * runs * sum(once.values()) / 1e9
        if seconds > SECONDS_MOST:
            rounds = max(ROUNDS_LEAST // QUARTERS, int(rounds * SECONDS_MOST / seconds))
        for _ in range(rounds):
            random.shuffle(names)
            for name in names:
                times[name].append(time_turn(sessions[name], inputs, runs))


def find_speeds(times):
    medians = {name: statistics.median(list_of) for name, list_of in times.items()}
    return {name: medians["original"] / medians[name] for name in times if name != "original"}


def time_all(entry, files):
    random = np.random.default_rng(5)
    times = {name: [] for name in files}
    for _ in range(3):
        run_rounds(entry, files, random, times)
        speeds = find_speeds(times)
        if (abs(speeds["copy"] - 1.0) <= NOISE_MOST and
                all(abs(speed - 1.0) <= 2 * NOISE_MOST for speed in speeds.values())):
            break
    return times, speeds


def main():
    onnxruntime.set_default_logger_severity(4)
    timed = sys.argv[1] != "--untimed"
    name, original, *rest = sys.argv[1 if timed else 2:]
    entry = next(entry for entry in read_list() if entry.name == name)
    variants = dict(text.split("=", 1) for text in rest)
    faults = {kind: find_fault(entry, original, path) for kind, path in variants.items()}
    usable = {kind: path for kind, path in variants.items()
              if faults[kind] is None or "onnxruntime" not in faults[kind]}
    kernels = {kind: list_kernels(path) for kind, path in {"original": original, **usable}.items()}
    outcome = {
        "faults": {kind: fault for kind, fault in faults.items() if fault is not None},
        "changed_nodes": {kind: find_changed_nodes(original, path)
                          for kind, path in variants.items()},
        "kernels": {kind: len(list_of) for kind, list_of in kernels.items()},
        "lost": {kind: find_lost(kernels["original"], kernels[kind]) for kind in usable},
        "speed": {},
    }
    if timed:
        times, speeds = time_all(entry, {"original": original, "copy": original, **usable})
        outcome["milliseconds"] = {kind: round(statistics.median(list_of) / 1e6, 4)
                                   for kind, list_of in times.items()}
        outcome["speed"] = {kind: round(speed, 4) for kind, speed in speeds.items()}
        outcome["rounds"] = len(times["original"])
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
