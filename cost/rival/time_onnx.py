"""Times a model with onnxruntime, one thread, on demand: for benchmarks that take turns with it.

    time_onnx.py MODEL.onnx off|all

Prints "ready" when the model is loaded, with all or none of the runtime's optimisations. Then, for
each line on standard input that holds a number, runs the model so often and prints the nanoseconds
of processor time that one run took. Ends when standard input does.
"""

import sys
import time

import numpy as np
import onnxruntime

from inputs import make_inputs

LEVELS = {
    "off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def main():
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[sys.argv[2]]
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(sys.argv[1], options,
                                           providers=["CPUExecutionProvider"])
    inputs = make_inputs(session, 7)
    outputs = session.run(None, inputs)
    assert all(np.isfinite(output).all() for output in outputs)
    print("ready", flush=True)
    for line in sys.stdin:
        runs = int(line)
        start = time.thread_time_ns()
        for _ in range(runs):
            session.run(None, inputs)
        print((time.thread_time_ns() - start) // runs, flush=True)


if __name__ == "__main__":
    main()
