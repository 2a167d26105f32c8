"""Functions that a file brings along, held against onnxruntime.

    functions.py make MODEL.onnx PLAIN.onnx IN.npz     writes a model of them, the same without an If
                                                       (which `graft run` lacks), and inputs
    functions.py compare MODEL.onnx OUT.onnx IN.npz    both compute the same, and OUT has no functions
    functions.py ran MODEL.onnx IN.npz OUTPUTS.npz     the outputs are those of the model
"""

import sys

import numpy as np
import onnx
from nets import run
from onnx import defs, helper, parser

# Names of bodies are those of the graph on purpose; `twice` has a value that the graph has, too.
TEXT = """<ir_version: 10, opset_import: ["" : 18, "my" : 1, "own" : 1]>
net (float[2,4] x, bool c) => (float[2,4] y, float[2,4] z, float[2,4] same, float[2,4] u, float[2,4] v, float[2,4] w) {
    t = my.twice <alpha = 0.25> (x)
    a, same, _ = my.pair(t)
    b = my.twice(a)
    y = own.HardSwish(b)
    z = If (c) <
        then_branch = yes () => (float[2,4] r) { r = my.twice (x) },
        else_branch = no () => (float[2,4] s) { s = Neg(x) }
    >
    u = my.chosen(x, c)
    v = my.bounded <to = 1> (y)
    w = my.loud(x)
}
<domain: "my", opset_import: ["" : 18]>
leaky <alpha: float = 0.5> (x) => (y) {
    y = LeakyRelu <alpha: float = @alpha> (x)
}
<domain: "my", opset_import: ["" : 18, "my" : 1]>
twice <alpha: float = 0.75> (x) => (y) {
    t = my.leaky <alpha: float = @alpha> (x)
    y = Add(t, t)
}
<domain: "my", opset_import: ["" : 18]>
pair (a) => (b, c, d) {
    b = Exp(a)
    c = Identity(a)
    d = Neg(b)
}
<domain: "my", opset_import: ["" : 18]>
chosen (y, c) => (x) {
    x = If (c) <
        then_branch = yes () => (float[2,4] r) { t = Exp(y)  r = Mul(t, y) },
        else_branch = no () => (float[2,4] r) { t = Abs(y)  r = Sub(y, t) }
    >
}
<domain: "my", opset_import: ["" : 18]>
bounded <to> (x, least, most) => (y) {
    i = Cast <to: int = @to> (x)
    y = Clip(i, least, most)
}
<domain: "my", opset_import: ["" : 18]>
loud (x) => (y) {
    y = Mul(x, x)
}"""


def without_ifs(graph):
    out = onnx.GraphProto()
    out.CopyFrom(graph)
    for part, name in ((out.node, lambda n: n.output[0]), (out.output, lambda o: o.name)):
        for item in [i for i in part if name(i) in "zu"]:
            part.remove(item)
    return out


def make(path, plain, inputs):
    model = parser.parse_model(TEXT)
    body = onnx.FunctionProto()  # Of an operator, as ONNX itself defines it.
    body.CopyFrom(defs.get_schema("HardSwish", 18).function_body)
    body.domain = "own"
    del body.opset_import[:]
    body.opset_import.append(helper.make_opsetid("", 18))
    model.functions.append(body)
    other = onnx.FunctionProto()
    other.CopyFrom(next(f for f in model.functions if f.name == "loud"))
    other.node[0].op_type = "Add"
    other.overload = "added"
    model.functions.append(other)
    next(n for n in model.graph.node if n.op_type == "loud").overload = "added"
    for nodes in (model.graph.node, *(f.node for f in model.functions)):
        for k, node in enumerate(nodes):
            node.name = f"n{k}"  # In each body the same names; of two in one graph onnxruntime makes an error.
    onnx.checker.check_model(model)
    onnx.save(model, path)
    model.graph.CopyFrom(without_ifs(model.graph))
    onnx.save(model, plain)
    np.savez(inputs, x=np.linspace(-3, 4, 8, dtype="float32").reshape(2, 4), c=np.array(True))


def compare(before, after, inputs):
    rewritten = onnx.load(after)
    onnx.checker.check_model(rewritten, full_check=True)
    assert not rewritten.functions
    fed = dict(np.load(inputs))
    names = [o.name for o in rewritten.graph.output]
    for fed["c"] in (np.array(True), np.array(False)):
        one, other = run(before, fed), run(after, fed)
        for name in names:
            assert np.allclose(one[name], other[name], atol=1e-6), (name, fed["c"])


def ran(model, inputs, outputs):
    found = np.load(outputs)
    wanted = run(model, dict(np.load(inputs)))
    for name, a in wanted.items():
        assert np.allclose(found[name], a, atol=1e-6), name


if __name__ == "__main__":
    {"make": make, "compare": compare, "ran": ran}[sys.argv[1]](*sys.argv[2:])
