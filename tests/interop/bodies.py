"""Models whose work is inside of If, Loop and Scan.

    bodies.py make FOLDER                        writes NAME.onnx, and NAME.npz with inputs, of each model below
    bodies.py compare A.onnx B.onnx IN.npz       holds two files against each other in onnxruntime
    bodies.py ran GRAFT NAME DATABASE            holds what `graft run` makes of NAME.onnx against it
    bodies.py sized FOLDER                       writes models whose sizes depend on data, with inputs
    bodies.py count FILE KIND                    how many nodes of a kind the file's bodies have, one inside the other
    bodies.py outside FILE COUNT                 asserts that so many initializers are the main graph's, and none a body's
    bodies.py cases GRAFT FOLDER DATA            optimizes ONNX's own cases and holds them against what they were
    bodies.py deep COUNT FILE                    writes so many Ifs, each in the one before
    bodies.py twice FILE                         writes a body that gives a name twice
"""

import glob
import shutil
import subprocess
import sys

import numpy as np
import nets
import onnx
from nets import run
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TEXT, PAST, WIDTH, HEADS = 6, 4, 32, 4
rng = np.random.default_rng(1)


def weight(name, *shape, scale=0.2):
    return numpy_helper.from_array((scale * rng.standard_normal(shape)).astype(np.float32), name)


def numbers(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def value(name, kind, shape):
    return nets.value(name, shape, kind)


class Writer:
    """Nodes of one graph, under names of its own."""

    def __init__(self, prefix):
        self.prefix, self.nodes = prefix, []

    def add(self, kind, *inputs, out=None, count=1, **attributes):
        names = [out] if out else [f"{self.prefix}{len(self.nodes)}_{k}" for k in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{self.prefix}n{len(self.nodes)}", **attributes))
        return names[0] if count == 1 else names


def heads(g, x, steps):
    return g.add("Transpose", g.add("Reshape", x, steps), perm=[0, 2, 1, 3])


def block(g, x, past, out, layer):
    """Attention over `past` and x, then two products with a Gelu between; weights are those outside."""
    w = lambda name: f"{name}{layer}"
    q, k, v = (heads(g, g.add("Add", g.add("MatMul", x, w(p)), w(p + "b")), "steps") for p in ("wq", "wk", "wv"))
    if past:
        k, v = g.add("Concat", past[0], k, axis=2), g.add("Concat", past[1], v, axis=2)
    scores = g.add("Mul", g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2])), "scale")
    mixed = g.add("MatMul", g.add("Softmax", scores, axis=-1), v)
    rows = g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), "rows")
    x = g.add("Add", x, g.add("Add", g.add("MatMul", rows, w("wo")), w("wob")))
    up = g.add("Add", g.add("MatMul", x, w("up")), w("upb"))
    half = g.add("Mul", up, "half")
    gelu = g.add("Mul", half, g.add("Add", g.add("Erf", g.add("Div", up, "root")), "one"))
    idle = g.add("Transpose", g.add("Transpose", gelu, perm=[0, 2, 1]), perm=[0, 2, 1])
    return g.add("Add", x, g.add("MatMul", idle, w("down")), out=out)


def decoder(batch):
    """As exporters merge a decoder: one branch uses the keys and values that are there, the other has none."""
    weights = [numbers("steps", 0, -1, HEADS, WIDTH // HEADS), numbers("rows", 0, -1, WIDTH), weight("embed", 50, WIDTH),
               weight("head", WIDTH, 50)]
    weights += [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in
                (("scale", 0.5), ("half", 0.5), ("root", 2 ** 0.5), ("one", 1))]
    for layer in (0, 1):
        for p in ("wq", "wk", "wv", "wo"):
            weights += [weight(f"{p}{layer}", WIDTH, WIDTH), weight(f"{p}b{layer}", WIDTH)]
        weights += [weight(f"up{layer}", WIDTH, 64), weight(f"upb{layer}", 64), weight(f"down{layer}", 64, WIDTH)]
    branches = []
    for prefix, past in (("then_", ("past_k", "past_v")), ("else_", None)):
        g = Writer(prefix)
        x = g.add("Transpose", g.add("Transpose", "x", perm=[0, 2, 1]), perm=[0, 2, 1])
        x = block(g, block(g, x, past, prefix + "x", 0), past, prefix + "z", 1)
        branches.append(helper.make_graph(g.nodes, prefix + "branch", [], [value(x, F, [batch, TEXT, WIDTH])]))
    main = [helper.make_node("Gather", ["embed", "ids"], ["x"]),
            helper.make_node("If", ["use_cache"], ["z"], "choice", then_branch=branches[0], else_branch=branches[1]),
            helper.make_node("MatMul", ["z", "head"], ["logits"])]
    past = [batch, HEADS, PAST, WIDTH // HEADS]
    n = batch if isinstance(batch, int) else 2
    feeds = {"ids": rng.integers(0, 50, (n, TEXT)), "use_cache": np.array([True]),
             "past_k": rng.standard_normal([n] + past[1:]), "past_v": rng.standard_normal([n] + past[1:])}
    made = model(main, [value("ids", I, [batch, TEXT]), value("use_cache", B, [1]), value("past_k", F, past), value("past_v", F, past)],
                 [value("logits", F, [batch, TEXT, 50])], weights)
    made.graph.value_info.append(value("x", F, [batch, TEXT, WIDTH]))
    return made, feeds


def scan():
    """The steps of an LSTM, each gate with a product of its own; the body does not say what its sizes are."""
    weights = []
    g = Writer("step_")
    gates = []
    for gate in "iofc":
        weights += [weight("w" + gate, 16, 24), weight("r" + gate, 24, 24), weight("b" + gate, 24)]
        gates.append(g.add("Add", g.add("Add", g.add("MatMul", "x_t", "w" + gate), g.add("MatMul", "h", "r" + gate)), "b" + gate))
    i, o, f = (g.add("Sigmoid", gate) for gate in gates[:3])
    g.add("Add", g.add("Mul", f, "c"), g.add("Mul", i, g.add("Tanh", gates[3])), out="c_next")
    g.add("Mul", o, g.add("Tanh", "c_next"), out="h_next")
    g.add("Identity", g.add("Identity", "h_next"), out="y_t")
    body = helper.make_graph(g.nodes, "step", [value("h", F, None), value("c", F, None), value("x_t", F, None)],
                             [value("h_next", F, None), value("c_next", F, None), value("y_t", F, None)])
    main = [helper.make_node("Scan", ["h0", "c0", "x"], ["h_end", "c_end", "y"], "cell", num_scan_inputs=1, scan_input_axes=[1],
                             scan_output_axes=[1], scan_input_directions=[1], scan_output_directions=[1], body=body)]
    return model(main, [value("h0", F, [3, 24]), value("c0", F, [3, 24]), value("x", F, [3, 7, 16])],
                 [value("h_end", F, [3, 24]), value("c_end", F, [3, 24]), value("y", F, [3, 7, 24])], weights), {
        "h0": rng.standard_normal((3, 24)), "c0": rng.standard_normal((3, 24)), "x": rng.standard_normal((3, 7, 16))}


def loop():
    """A state that goes round, and what each round makes of it."""
    g = Writer("round_")
    a, b = g.add("MatMul", "s", "wa"), g.add("MatMul", "s", "wb")
    t = g.add("Tanh", g.add("Transpose", g.add("Transpose", g.add("Concat", a, b, axis=1), perm=[1, 0]), perm=[1, 0]))
    g.add("Add", g.add("MatMul", t, "wc"), "shift", out="s_next")
    g.add("ReduceMean", "s_next", out="mean", keepdims=0)
    g.add("Identity", "go", out="go_next")
    body = helper.make_graph(g.nodes, "round", [value("i", I, []), value("go", B, []), value("s", F, [5, 32])],
                             [value("go_next", B, []), value("s_next", F, [5, 32]), value("mean", F, [])],
                             [weight("wc", 64, 32)])
    main = [helper.make_node("Relu", ["shift0"], ["shift"]), helper.make_node("Loop", ["rounds", "", "s0"], ["s_end", "means"], "rounds", body=body)]
    return model(main, [value("s0", F, [5, 32]), value("shift0", F, [32])], [value("s_end", F, [5, 32]), value("means", F, [6])],
                 [weight("wa", 32, 32), weight("wb", 32, 32), numpy_helper.from_array(np.array(6, np.int64), "rounds")]), {
        "s0": rng.standard_normal((5, 32)), "shift0": rng.standard_normal(32)}


def nested():
    """An If inside of a Loop: even rounds take one way, odd ones the other; both read from two graphs around."""
    ways = []
    for prefix, last in (("even_", "Tanh"), ("odd_", "Sigmoid")):
        g = Writer(prefix)
        a, b = g.add("MatMul", "s", "wa"), g.add("MatMul", "s", "wb")
        g.add(last, g.add("MatMul", g.add("Transpose", g.add("Transpose", g.add("Mul", a, b), perm=[1, 0]), perm=[1, 0]), "scaled"), out=prefix + "s")
        ways.append(helper.make_graph(g.nodes, prefix + "way", [], [value(prefix + "s", F, [5, 32])]))
    g = Writer("round_")
    g.add("Mul", "wc", "factor", out="scaled")
    g.add("Equal", g.add("Mod", "i", "two"), "zero", out="even")
    g.add("If", "even", out="s_next", then_branch=ways[0], else_branch=ways[1])
    g.add("Identity", "go", out="go_next")
    body = helper.make_graph(g.nodes, "round", [value("i", I, []), value("go", B, []), value("s", F, [5, 32])],
                             [value("go_next", B, []), value("s_next", F, [5, 32])])
    main = [helper.make_node("Loop", ["rounds", "", "s0"], ["s_end"], "rounds", body=body)]
    whole = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("rounds", 5), ("two", 2), ("zero", 0))]
    return model(main, [value("s0", F, [5, 32]), value("factor", F, [32])], [value("s_end", F, [5, 32])],
                 [weight("wa", 32, 32), weight("wb", 32, 32), weight("wc", 32, 32)] + whole), {
        "s0": rng.standard_normal((5, 32)), "factor": rng.standard_normal(32)}


def until():
    """Rounds that nobody counts."""
    g = Writer("round_")
    g.add("Mul", g.add("Abs", "s"), "wa", out="s_next")
    g.add("Greater", g.add("ReduceSum", "s_next", keepdims=0), "limit", out="go_next")
    body = helper.make_graph(g.nodes, "round", [value("i", I, []), value("go", B, []), value("s", F, [5])],
                             [value("go_next", B, []), value("s_next", F, [5])])
    main = [helper.make_node("Loop", ["", "go0", "s0"], ["s_end"], "rounds", body=body)]
    factors = [numpy_helper.from_array(v, n) for n, v in (("wa", np.full(5, 0.75, np.float32)), ("limit", np.float32(0.2)))]
    return model(main, [value("go0", B, []), value("s0", F, [5])], [value("s_end", F, [5])], factors), {
        "go0": np.array(True), "s0": rng.standard_normal(5)}


def asked():
    """How often, whether and which way are inputs, and each way rounds otherwise when it is rewritten."""
    g = Writer("round_")
    g.add("Mul", g.add("MatMul", "s", "wa"), "third", out="s_next")
    g.add("Identity", "go", out="go_next")
    body = helper.make_graph(g.nodes, "round", [value("i", I, []), value("go", B, []), value("s", F, [5, 32])],
                             [value("go_next", B, []), value("s_next", F, [5, 32])])
    return model([helper.make_node("Loop", ["n", "go0", "s0"], ["s_end"], "rounds", body=body)],
                 [value("n", I, []), value("go0", B, []), value("s0", F, [5, 32])], [value("s_end", F, [5, 32])],
                 [weight("wa", 32, 32), numpy_helper.from_array(np.float32(1 / 3), "third")]), {
        "n": np.array(3), "go0": np.array(True), "s0": rng.standard_normal((5, 32))}


def ways(first):
    """A number says which way, and only one of the two rounds otherwise when it is rewritten."""
    branches = []
    for prefix in ("then_", "else_"):
        g = Writer(prefix)
        if (prefix == "then_") == first:
            g.add("Mul", g.add("MatMul", "x", "wa"), "third", out=prefix + "y")
        else:
            g.add("Relu", g.add("Abs", "x"), out=prefix + "y")
        branches.append(helper.make_graph(g.nodes, prefix + "branch", [], [value(prefix + "y", F, [5, 32])]))
    main = [helper.make_node("Cast", ["k"], ["c"], to=B),
            helper.make_node("If", ["c"], ["y"], "choice", then_branch=branches[0], else_branch=branches[1])]
    return model(main, [value("k", I, [1]), value("x", F, [5, 32])], [value("y", F, [5, 32])],
                 [weight("wa", 32, 32), numpy_helper.from_array(np.float32(1 / 3), "third")]), {
        "k": np.array([1]), "x": rng.standard_normal((5, 32))}


def twins(alike):
    """Two branches over the same weights: both have products that become one, or only one of them has."""
    branches = []
    for prefix in ("then_", "else_"):
        g = Writer(prefix)
        sides = ("x", "x") if alike or prefix == "then_" else ("x", "x2")
        parts = [g.add("MatMul", side, w) for side, w in zip(sides, ("wa", "wb"))]
        g.add("Tanh" if prefix == "then_" else "Sigmoid", g.add("Concat", *parts, axis=1), out=prefix + "y")
        branches.append(helper.make_graph(g.nodes, prefix + "branch", [], [value(prefix + "y", F, [8, 256])]))
    main = [helper.make_node("If", ["use_cache"], ["y"], "choice", then_branch=branches[0], else_branch=branches[1])]
    return model(main, [value("x", F, [8, 64]), value("x2", F, [8, 64]), value("use_cache", B, [1])], [value("y", F, [8, 256])],
                 [weight("wa", 64, 128), weight("wb", 64, 128)]), {
        "x": rng.standard_normal((8, 64)), "x2": rng.standard_normal((8, 64)), "use_cache": np.array([True])}


def model(nodes, inputs, outputs, weights):
    made = nets.model(nodes, inputs, outputs, weights)
    onnx.checker.check_model(made, full_check=True)
    return made


def make(folder):
    for name, (made, feeds) in {"decoder": decoder(2), "open": decoder("batch"), "scan": scan(), "loop": loop(), "nested": nested(), "until": until(),
                                "asked": asked(), "first": ways(True), "second": ways(False),
                                "twins": twins(True), "rivals": twins(False)}.items():
        onnx.save(made, f"{folder}/{name}.onnx")
        np.savez(f"{folder}/{name}.npz", **{k: v.astype(np.float32) if v.dtype == np.float64 else v for k, v in feeds.items()})


def load(path):
    """The inputs; where a truth value is one, both."""
    feeds = dict(np.load(path))
    truths = [k for k, v in feeds.items() if v.dtype == bool]
    return [{**feeds, **{k: np.full_like(feeds[k], c) for k in truths}} for c in (True, False)] if truths else [feeds]


def ask(graft, *words):
    subprocess.run([graft, "--quiet", *words], check=True, stdout=subprocess.DEVNULL)


def agree(want, have):
    assert want.keys() == have.keys(), (want.keys(), have.keys())
    for name, expected in want.items():
        np.testing.assert_allclose(have[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)


def compare(a, b, inputs):
    onnx.checker.check_model(b, full_check=True)
    for feeds in load(inputs):
        agree(run(a, feeds), run(b, feeds))


def ran(graft, name, database):
    """What `graft run` makes of a model, each branch of it, is what onnxruntime does."""
    for feeds in load(f"{name}.npz"):
        agree(run(f"{name}.onnx", feeds), nets.execute(graft, f"{name}.onnx", feeds, "--database", database))


def sized(folder):
    """What depends on data: the size of a state, of what a branch makes, of what is collected."""
    def loop(name, state, collects, most):
        g = Writer("round_")
        g.add("Concat" if state else "Identity", *(["s", "s"] if state else ["s"]), out="s_next", **({"axis": 0} if state else {}))
        g.add("Identity", "go", out="go_next")
        outs = [value("go_next", B, []), value("s_next", F, None)]
        if collects:
            g.add("Exp", "s", out="e")
            outs.append(value("e", F, None))
        body = helper.make_graph(g.nodes, "round", [value("i", I, []), value("go", B, []), value("s", F, None)], outs)
        main = [helper.make_node("Loop", [most, "", "x"], ["y", "z"] if collects else ["y"], name, body=body)]
        return main

    def branches():
        ways = [helper.make_graph([helper.make_node(k, ["x"], [k], **a)], k, [], [value(k, F, None)])
                for k, a in (("Exp", {}), ("ReduceMax", {"keepdims": 0}))]
        return [helper.make_node("If", ["c"], ["y"], "differ", then_branch=ways[0], else_branch=ways[1])]

    for name, nodes in {"grows": loop("grows", True, False, "three"), "counts": loop("counts", False, True, "n"), "differ": branches()}.items():
        ports = [value("x", F, [4])] + [value("n", I, [])] * (name == "counts") + [value("c", B, [])] * (name == "differ")
        outs = [value("y", F, None)] + [value("z", F, None)] * (name == "counts")
        three = {"three": np.array(3, np.int64)} if name == "grows" else {}
        onnx.save(nets.model(nodes, ports, outs, three), f"{folder}/{name}.onnx")
        known = {"x": np.arange(4, dtype=np.float32), "n": np.array(5, np.int64), "c": np.array(True)}
        np.savez(f"{folder}/{name}.npz", **{port.name: known[port.name] for port in ports})


def graphs(graph):
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield attribute.g
                yield from graphs(attribute.g)


def count(path, kind):
    print(sum(n.op_type == kind for g in graphs(onnx.load(path).graph) for n in g.node))


def outside(path, expected):
    graph = onnx.load(path).graph
    assert len(graph.initializer) == int(expected) and not any(g.initializer for g in graphs(graph))


def cases(graft, folder, data):
    ran = 0
    for case in sorted(sum((glob.glob(f"{data}/node/test_{kind}*") for kind in ("if", "loop", "scan")), [])):
        for options in (["--simplify"], ["--device", "intel-xeon-6-207"]):
            ask(graft, "optimize", f"{case}/model.onnx", f"{folder}/case.onnx", *options)
        onnx.checker.check_model(f"{folder}/case.onnx", full_check=True)
        feeds = {}
        for i, port in enumerate(onnx.load(f"{case}/model.onnx").graph.input):
            with open(f"{case}/test_data_set_0/input_{i}.pb", "rb") as f:
                feeds[port.name] = numpy_helper.to_array(onnx.TensorProto.FromString(f.read())) if port.type.HasField("tensor_type") else None
        if None not in [v if v is None else 0 for v in feeds.values()] and "seq" not in case:
            agree(run(f"{case}/model.onnx", feeds), run(f"{folder}/case.onnx", feeds))
            ran += 1
        if case.endswith(("test_if", "test_scan9_sum")):
            shutil.copy(f"{case}/model.onnx", f"{folder}/case.onnx")
            agree(run(f"{case}/model.onnx", feeds), nets.execute(graft, f"{folder}/case.onnx", feeds, "--database", f"{folder}/x.costs"))
    assert ran >= 4, ran


def field(number, data):
    """A part of a message in bytes: such messages may be nested deeper than Python's library writes them."""
    size, length = len(data), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def deep(count, path):
    def graph(i, inner):
        port = value(f"y{i}", F, [2])
        idle = helper.make_node("Identity", [f"z{i}"], [f"y{i}"])
        other = helper.make_graph([helper.make_node("Exp", ["x"], [f"e{i}"])], f"e{i}", [], [value(f"e{i}", F, [2])])
        choice = helper.make_node("If", ["c"], [f"z{i}"], f"n{i}", else_branch=other).SerializeToString()
        then = onnx.AttributeProto(name="then_branch", type=onnx.AttributeProto.GRAPH).SerializeToString() + field(6, inner)
        return field(1, choice + field(5, then)) + helper.make_graph([idle], f"g{i}", [], [port]).SerializeToString()

    made = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "g", [], [value("y", F, [2])]).SerializeToString()
    for i in range(int(count)):
        made = graph(i, made)
    made += field(11, value("x", F, [2]).SerializeToString()) + field(11, value("c", B, []).SerializeToString())
    whole = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)])
    with open(path, "wb") as f:
        f.write(whole.SerializeToString() + field(7, made))


def twice(path):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Exp", ["x"], ["a"])]
    branch = helper.make_graph(nodes, "branch", [], [value("a", F, [2])])
    choice = helper.make_node("If", ["c"], ["y"], "choice", then_branch=branch, else_branch=branch)
    onnx.save(nets.model([choice], [value("c", B, []), value("x", F, [2])], [value("y", F, [2])], []), path)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
