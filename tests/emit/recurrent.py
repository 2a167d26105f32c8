"""LSTM, GRU and RNN in all forms that are unrolled, and in such as are not (test_recurrent.sh).

    recurrent.py make FOLDER             all.onnx, its in.npz and, by onnxruntime, want.npz; whole*, likewise, of
                                         forms that run whole; long.npz, where a sequence is too long for it
    recurrent.py refused FOLDER          a file for each form that is refused: REASON.onnx
    recurrent.py run MODEL IN OUT        onnxruntime's outputs
    recurrent.py device                  a device (docs/devices.md) that runs steps faster than whole nodes
"""

import itertools
import os
import sys

import numpy as np
import nets
import onnx
from onnx import TensorProto, helper, numpy_helper

STEPS, BATCH, FEATURES, UNITS = 4, 2, 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
random = np.random.default_rng(1)


class Net:
    """A model that grows by nodes, each with weights of its own."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs, self.fed = [], [], [], [], {}

    def weight(self, name, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def random(self, name, *shape):
        return self.weight(name, random.uniform(-0.5, 0.5, shape).astype("float32"))

    def feed(self, name, *shape):
        self.inputs.append(nets.value(name, shape))
        self.fed[name] = random.uniform(-1, 1, shape).astype("float32")
        return name

    def feed_lengths(self, name, lengths):
        self.inputs.append(nets.value(name, [len(lengths)], TensorProto.INT32))
        self.fed[name] = np.asarray(lengths, "int32")
        return name

    def add(self, kind, direction="forward", batch_first=False, stated=True, biased=True, lengths=None,
            fed_lengths=None, peephole=False, steps=STEPS, **more):
        """`batch_first` is made of one that is not, for onnxruntime: `layout` is left to the caller."""
        name = f"n{len(self.nodes)}"
        sides, gates = 2 if direction == "bidirectional" else 1, GATES[kind]
        x = self.feed(name + "x", *((BATCH, steps) if batch_first else (steps, BATCH)), FEATURES)
        state = (BATCH, sides, UNITS) if batch_first else (sides, BATCH, UNITS)
        names = [x, self.random(name + "w", sides, gates * UNITS, FEATURES),
                 self.random(name + "r", sides, gates * UNITS, UNITS),
                 self.random(name + "b", sides, 2 * gates * UNITS) if biased else "",
                 self.weight(name + "l", np.asarray(lengths, "int32")) if lengths else
                 self.feed_lengths(name + "l", fed_lengths) if fed_lengths else "",
                 self.feed(name + "h", *state) if stated else ""]
        if kind == "LSTM":
            names.append(self.feed(name + "c", *state) if stated else "")
            names.append(self.random(name + "p", sides, 3 * UNITS) if peephole else "")
        outputs = [name + "Y", name + "Yh", name + "Yc"][:3 if kind == "LSTM" else 2]
        if batch_first:
            more["layout"] = 1
        node = helper.make_node(kind, names, outputs, name, hidden_size=UNITS, direction=direction, **more)
        self.nodes.append(node)
        self.outputs += [nets.value(output, None) for output in outputs]

    def model(self):
        return nets.model(self.nodes, self.inputs, self.outputs, self.weights)


def all_forms():
    net = Net()
    for kind, direction, batch_first, stated in itertools.product(
            GATES, ("forward", "reverse", "bidirectional"), (False, True), (False, True)):
        net.add(kind, direction, batch_first, stated)
    for linear in (0, 1):
        for direction in ("forward", "bidirectional"):
            net.add("GRU", direction, linear_before_reset=linear)
            net.add("GRU", direction, biased=False, linear_before_reset=linear)
    net.add("LSTM", biased=False, lengths=[STEPS] * BATCH, activations=["Sigmoid", "Tanh", "Tanh"])
    net.add("RNN", steps=1)
    return net


def whole_forms():
    net = Net()
    for kind, direction, linear in itertools.product(GATES, ("forward", "reverse", "bidirectional"), (0, 1)):
        more = {"linear_before_reset": linear} if kind == "GRU" else {}
        net.add(kind, direction, fed_lengths=[STEPS - 1 - linear, STEPS], biased=linear == 0, stated=linear == 0, **more)
    for kind in GATES:
        net.add(kind, "bidirectional", lengths=[STEPS, 1], activations={
            "LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Relu"]}[kind] * 2)
        net.add(kind, steps=300)
    return net


def steps_first(net):
    """The same for onnxruntime, which does not have `layout`."""
    made = Net()
    made.weights, made.fed = net.weights, net.fed
    made.inputs, made.outputs = net.inputs, net.outputs
    for node in net.nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        turned = [a for a in copy.attribute if a.name == "layout"]
        for attribute in turned:
            copy.attribute.remove(attribute)
            for k in (0, 5, 6):
                if k < len(copy.input) and copy.input[k]:
                    made.nodes.append(helper.make_node("Transpose", [copy.input[k]], [copy.input[k] + "t"],
                                                       perm=[1, 0, 2]))
                    copy.input[k] += "t"
        made.nodes.append(copy)
        for k, name in enumerate(copy.output if turned else []):
            copy.output[k] += "t"
            made.nodes.append(helper.make_node("Transpose", [name + "t"], [name],
                                               perm=[2, 0, 1, 3] if k == 0 else [1, 0, 2]))
    return made.model()


def make(folder):
    net = all_forms()
    onnx.save(net.model(), folder + "/all.onnx")
    plain = Net()
    for kind in GATES:
        plain.add(kind)
    onnx.save(plain.model(), folder + "/plain.onnx")
    np.savez(folder + "/plain.npz", **plain.fed)
    np.savez(folder + "/in.npz", **net.fed)
    np.savez(folder + "/want.npz", **nets.run(steps_first(net), net.fed))
    whole = whole_forms()
    onnx.save(whole.model(), folder + "/whole.onnx")
    np.savez(folder + "/wholein.npz", **whole.fed)
    np.savez(folder + "/wholewant.npz", **nets.run(whole.model(), whole.fed))
    whole.fed["n0l"][1] = STEPS + 1
    np.savez(folder + "/long.npz", **whole.fed)


def refused(folder):
    forms = {"lengths": {"lengths": [STEPS, STEPS - 1]}, "peephole": {"peephole": True}, "clip": {"clip": 0.5},
             "steps": {"steps": STEPS + 1}, "activations": {"activations": ["Sigmoid", "Relu", "Tanh"]},
             "coupled": {"input_forget": 1}}
    for reason, form in forms.items():
        net = Net()
        net.add("LSTM", **form)
        onnx.save(net.model(), f"{folder}/{reason}.onnx")


def device():
    def answer(question):
        if question["ask"] == "time":
            return {"median_ns": 1000 + os.path.getsize(question["model"]) / 100, "spread_ns": 1, "rounds": 5}
        wholes = [sum(node.op_type in GATES for node in onnx.load(path).graph.node) for path in question["models"]]
        return {"rounds_ns": [[1000 * (1 + whole)] * question["rounds"] for whole in wholes]}
    nets.serve("steps", {}, answer)


def main():
    what, *rest = sys.argv[1:]
    if what == "run":
        np.savez(rest[2], **nets.run(rest[0], dict(np.load(rest[1]))))
    else:
        {"make": make, "refused": refused, "device": device}[what](*rest)


if __name__ == "__main__":
    main()
