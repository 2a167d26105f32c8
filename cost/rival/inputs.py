"""Random inputs for a model of onnxruntime."""

import numpy as np

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8, "tensor(bool)": np.bool_,
}


def make_inputs(session, seed):
    random = np.random.default_rng(seed)
    inputs = {}
    for port in session.get_inputs():
        shape = [size if isinstance(size, int) and size > 0 else 1 for size in port.shape]
        kind = TYPES[port.type]
        if kind is np.bool_:
            value = random.integers(0, 2, shape)
        elif np.issubdtype(kind, np.integer):
            value = random.integers(0, 2, shape)
        else:
            value = random.standard_normal(shape)
        inputs[port.name] = np.asarray(value).astype(kind)
    return inputs
