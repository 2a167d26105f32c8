"""Calls each function of the module graft, as a user would; an argument is the name of a device whose
costs come with Graft."""

import sys
from pathlib import Path

import graft

DEVICE = sys.argv[1]
TRUE = "rules:\n  - name: twice\n    source: relu(relu(a))\n    target: relu(a)\n"
FALSE = "rules:\n  - name: wrong\n    source: relu(add(a, b))\n    target: add(relu(a), relu(b))\n"


def fails(status: int, text: str, call: graft.Progress) -> None:
    """The call raises what the program says."""
    try:
        call("")
    except graft.Error as error:
        assert error.status == status and text in str(error), error
        return
    raise AssertionError(f"nothing was raised: {text}")


class Model:
    """As onnx.ModelProto, of which only this is asked."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def SerializeToString(self) -> bytes:
        return self.data


def verifies() -> None:
    lines: list[str] = []
    (verdict,) = graft.verify(TRUE, progress=lines.append)
    assert verdict.proved and verdict.name == "twice" and verdict.counterexample is None
    assert any("1/1 rules" in line for line in lines), lines
    Path("false.yaml").write_text(FALSE)
    for source in ("false.yaml", Path("false.yaml"), FALSE):
        (verdict,) = graft.verify(source)
        assert verdict.verdict == "refuted" and not verdict.proved and verdict.counterexample
    assert graft.verify(TRUE + FALSE[len("rules:\n") :], only="twice")[0].proved
    fails(2, "none.yaml: cannot open", lambda _: graft.verify("none.yaml"))
    fails(2, "that cannot be tried", lambda _: graft.verify("rules:\n  - name: x\n    source: relu(\n    target: a\n"))


def stop(line: str) -> None:
    raise KeyboardInterrupt(line)


def interrupts() -> None:
    try:
        graft.verify(TRUE, progress=stop)
    except KeyboardInterrupt:
        return
    raise AssertionError("the callback's exception is lost")


def lists() -> None:
    everything = graft.rules()
    assert len(everything) > 1000 and all(rule.proof == "proved" for rule in everything)
    some = graft.rules(uses="matmul", shrinks=True)
    assert 0 < len(some) < len(everything) and all("matmul" in rule.source + rule.target for rule in some)
    fails(2, "no operator 'nonesuch'", lambda _: graft.rules(uses="nonesuch"))


def optimizes() -> None:
    done = graft.optimize("resnet8", "out.onnx", device=DEVICE, database="a.costs")
    assert done.path == Path("out.onnx") and done.path.stat().st_size > 0 and done.data == b""
    assert 0 < done.cost_ns_after <= done.cost_ns_before and done.operators_after > 0
    data = Path("out.onnx").read_bytes()
    for model in (data, Model(data), "out.onnx", Path("out.onnx")):
        again = graft.optimize(model, device=DEVICE, database="a.costs")
        assert again.path is None and len(again.data) > 0 and again.operators_before == done.operators_after
    fails(2, "no model 'nonesuch'", lambda _: graft.optimize("nonesuch", "x.onnx", device=DEVICE))
    fails(2, "--search is auto, greedy", lambda _: graft.optimize("resnet8", "x.onnx", search="best"))
    fails(2, "model.onnx: byte 0", lambda _: graft.optimize(b"nonsense", "x.onnx", device=DEVICE))


assert graft.program.exists() and (graft.include / "graft" / "graft.h").exists()
verifies()
interrupts()
lists()
optimizes()
