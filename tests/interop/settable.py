"""An initializer that is an input too can be set, also in what comes back.

    settable.py make MODEL.onnx             writes a model with two such, one of them a shape
    settable.py compare MODEL.onnx OUT.onnx  both compute the same, set or not
"""

import sys

import numpy as np
import onnx
from nets import run
from onnx import numpy_helper, parser

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x, float[3] w, int64[2] shape) => (float[N,3] y, float[3] z, float[A,B] q) {
    c = Constant<value = float[3] {1, 2, 3}>()
    z = Mul(w, c)
    a = Add(x, w)
    t = Transpose<perm = [1, 0]>(a)
    u = Transpose<perm = [1, 0]>(t)
    y = Mul(u, z)
    q = Reshape(y, shape)
}"""


def make(path):
    model = parser.parse_model(TEXT)
    for name, value in {"w": np.array([1, -2, 3], "float32"), "shape": np.array([3, -1])}.items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(model, path)


def compare(*paths):
    onnx.checker.check_model(paths[1], full_check=True)
    assert [i.name for i in onnx.load(paths[1]).graph.input] == ["x", "w", "shape"]
    for given in ({}, {"w": np.array([5, 6, 7], "float32")}, {"shape": np.array([-1, 1])}):
        fed = {"x": np.arange(12, dtype="float32").reshape(4, 3), **given}
        before, after = (run(path, fed) for path in paths)
        assert before.keys() == after.keys()
        for name, a in before.items():
            assert a.shape == after[name].shape and np.allclose(a, after[name]), given


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](*sys.argv[2:])
