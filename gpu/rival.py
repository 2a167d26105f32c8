"""rival.py - the zoo's models by PyTorch, on the same GPU as `make gpu-check` ran them.

python3 gpu/rival.py TYPE MODEL...   (TYPE: fp16, bf16, tf32)

The architectures are torchvision's and Hugging Face's, after which the zoo's models are made. Each is
run as it is (eager, cuDNN's benchmark mode on, channels last) and compiled by torch.compile, both
captured as a CUDA graph and replayed, as Graft's executor is: neither pays for Python. Prints a JSON
line a model: nanoseconds of one replay, median and distance between the quartiles of ROUNDS rounds.
"""
import json
import statistics
import sys

import torch

ROUNDS, REPLAYS = 9, 50
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}


def image_model(name, size=224):
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    return model.to(memory_format=torch.channels_last), lambda kind: (
        torch.randn(1, 3, size, size, dtype=kind).to(memory_format=torch.channels_last),)


def bert():
    from transformers import BertConfig, BertModel

    tokens = torch.randint(0, 1000, (1, 128))
    mask = torch.zeros(1, 1, 128, 128)  # As it is added: making it would wait for the GPU.
    mask[..., ::2] = -65504.0
    return BertModel(BertConfig()), lambda kind: (tokens, mask.to(kind), torch.zeros_like(tokens))


def vit():
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig()), lambda kind: (torch.randn(1, 3, 224, 224, dtype=kind),)


MODELS = {
    "resnet18": lambda: image_model("resnet18"),
    "resnet50": lambda: image_model("resnet50"),
    "resnext50": lambda: image_model("resnext50_32x4d"),
    "squeezenet": lambda: image_model("squeezenet1_1"),
    "mobilenetv2": lambda: image_model("mobilenet_v2"),
    "inceptionv3": lambda: image_model("inception_v3", 299),
    "bert": bert,
    "vit": vit,
}


def time_replays(run):
    """Nanoseconds of a replay of `run`: median, and distance between the quartiles."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    samples = []
    for _ in range(ROUNDS + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e6 / REPLAYS)
    low, median, high = statistics.quantiles(samples[1:], n=4)
    return median, high - low


def measure(name, type_name):
    kind = TYPES[type_name]
    model, make_inputs = MODELS[name]()
    model = model.eval().to("cuda", kind)
    inputs = [x.cuda() for x in make_inputs(kind)]
    line = {"model": name, "type": type_name, "torch": torch.__version__,
            "device": torch.cuda.get_device_name()}
    for word, run in ("eager", model), ("compiled", torch.compile(model)):
        try:
            line[f"{word}_ns"], line[f"{word}_spread_ns"] = time_replays(lambda: run(*inputs))
        except Exception as error:  # The other way may do.
            print(f"rival: {name}, {word}: {error}", file=sys.stderr)
    return line


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in TYPES or not set(sys.argv[2:]) <= set(MODELS):
        sys.exit(f"usage: rival.py {'|'.join(TYPES)} MODEL...   of {', '.join(MODELS)}")
    if not torch.cuda.is_available():
        sys.exit("rival: PyTorch sees no GPU")
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    for name in sys.argv[2:]:
        with torch.inference_mode():
            print(json.dumps(measure(name, sys.argv[1])), flush=True)


if __name__ == "__main__":
    main()
