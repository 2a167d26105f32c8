"""Graft from Python: rewrite ONNX models by proved substitutions, and prove rules of your own.

    import graft

    done = graft.optimize("model.onnx", "faster.onnx", check=3)
    print(done.cost_ns_before, done.cost_ns_after)

    for verdict in graft.verify("rules:\n  - name: twice\n    source: relu(relu(a))\n    target: relu(a)\n"):
        print(verdict.name, verdict.verdict)

Every function runs the program that comes with this package (`graft.program`). What fails raises
`graft.Error` with the program's message. `progress` is called with each line that the program says
while it works; an exception from it ends the program.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Union

__all__ = ["Error", "Optimized", "Rule", "Verdict", "include", "optimize", "program", "rules", "verify"]

_FOLDER = Path(__file__).resolve().parent
_ERROR = "graft: error: "

program: Path = _FOLDER / "bin" / "graft"
"""The program itself; `graft help` lists what else it does."""

include: Path = _FOLDER / "include"
"""The folder of the C headers, for a compiler's -I."""

__version__: str = (_FOLDER / "VERSION").read_text(encoding="ascii").strip()

Progress = Callable[[str], Any]


class Error(RuntimeError):
    """What the program could not do, in its own words; `status` is its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Model(Protocol):
    """What onnx.ModelProto has; the onnx package is not needed."""

    def SerializeToString(self) -> bytes: ...


Model = Union[str, "os.PathLike[str]", bytes, _Model]


@dataclass(frozen=True)
class Optimized:
    """A rewritten model, and what it costs by the device's prices."""

    path: Path | None
    """Where it was written; None when no file was named."""
    data: bytes
    """The ONNX file; onnx.load_from_string reads it. Empty when a file was named."""
    operators_before: int
    operators_after: int
    cost_ns_before: float
    cost_ns_after: float
    rules_applied: int
    seconds: float
    """The time of the search."""
    difference: float | None
    """The largest difference of outputs that `check` found, of the largest magnitude."""


@dataclass(frozen=True)
class Verdict:
    """What is known of a rule."""

    name: str | None
    verdict: str
    """proved, within-bounds, refuted, unknown or error."""
    numeric: str | None
    """exact or reassociating, of what holds."""
    reason: str | None
    """Why it is not proved."""
    counterexample: dict[str, Any] | None
    suggestion: str | None
    """A precondition with which it would be true."""

    @property
    def proved(self) -> bool:
        return self.verdict == "proved"


@dataclass(frozen=True)
class Rule:
    """A rule of the set; docs/rules.md says how to read one."""

    id: str
    name: str
    source: str
    target: str
    where: str
    numeric: str
    proof: str
    family: str
    gain: int
    """How many operators it saves."""


def _run(arguments: list[str], progress: Progress | None, accepted: tuple[int, ...]) -> list[dict[str, Any]]:
    """What the program prints as JSON Lines, when it ends with one of these statuses."""
    command = [str(program), "--json", *([] if progress else ["--quiet"]), *arguments]
    message = ""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as results:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=results, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
        ) as process:
            assert process.stderr is not None
            try:
                for line in process.stderr:
                    line = line.rstrip("\n")
                    if line.startswith(_ERROR):
                        message = line[len(_ERROR) :]
                    elif progress:
                        progress(line.removeprefix("graft: "))
            except BaseException:
                process.terminate()
                raise
        if process.returncode not in accepted:
            raise Error(message or f"the program ended with status {process.returncode}", process.returncode)
        results.seek(0)
        return [json.loads(line) for line in results]


@contextmanager
def _model_file(model: Model, folder: Path) -> Iterator[str]:
    """The name of a file with the model, or of one of the zoo."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    path = folder / "model.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    yield str(path)


def optimize(
    model: Model,
    out: str | os.PathLike[str] | None = None,
    *,
    device: str = "cpu",
    search: str = "auto",
    exact: bool = False,
    check: int = 0,
    sizes: Mapping[str, int] | None = None,
    policy: str | os.PathLike[str] | None = None,
    database: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Optimized:
    """Rewrites a model: the path of an ONNX file, a name of Graft's zoo, the bytes of a file, or an
    onnx.ModelProto. The result is written to `out`, or is in the result's `data`.

    `device` is whose costs count: "cpu" measures on this machine what was not measured before;
    `search` is auto (greedy, and guided on top) or one that `graft help optimize` names; `exact`
    keeps to rules that give the same bits; `check` runs both models on so many random inputs and
    compares; `sizes` are values for sizes that the model leaves open; `policy` a policy.graft to
    follow instead of a search."""
    with tempfile.TemporaryDirectory(prefix="graft-") as temporary:
        folder = Path(temporary)
        written = Path(out) if out is not None else folder / "out" / "model.onnx"
        if out is None:
            written.parent.mkdir()
        with _model_file(model, folder) as name:
            arguments = ["optimize", f"--device={device}", f"--search={search}"]
            arguments += ["--exact"] if exact else []
            arguments += [f"--check={check}"] if check else []
            arguments += [f"--size={key}={value}" for key, value in (sizes or {}).items()]
            arguments += [f"--policy={os.fspath(policy)}"] if policy is not None else []
            arguments += [f"--database={os.fspath(database)}"] if database is not None else []
            arguments += [f"--threads={threads}"] if threads is not None else []
            said = _run([*arguments, "--", name, str(written)], progress, (0,))[-1]
        if out is None and len(list(written.parent.iterdir())) > 1:
            raise Error("the model keeps data in a file beside it: name a file to write", 2)
        return Optimized(
            path=written if out is not None else None,
            data=written.read_bytes() if out is None else b"",
            operators_before=said["operators_before"],
            operators_after=said["operators_after"],
            cost_ns_before=said["cost_ns_before"],
            cost_ns_after=said["cost_ns_after"],
            rules_applied=said["rules_applied"],
            seconds=said["seconds"],
            difference=said.get("difference"),
        )


def verify(
    text_or_path: str | os.PathLike[str], *, only: str | None = None, suggest: bool = True, progress: Progress | None = None
) -> list[Verdict]:
    """Proves or refutes rules: a text (what has a line break), or the path of a YAML file. Each rule
    has its verdict; a file or rule that cannot be read raises."""
    with tempfile.TemporaryDirectory(prefix="graft-") as temporary:
        path = os.fspath(text_or_path)
        if isinstance(text_or_path, str) and "\n" in text_or_path:
            path = str(Path(temporary) / "rules.yaml")
            Path(path).write_text(text_or_path, encoding="utf-8")
        arguments = ["verify", *([f"--only={only}"] if only is not None else []), *([] if suggest else ["--no-suggest"])]
        said = _run([*arguments, "--", path], progress, (0, 1, 3))
    return [Verdict(**{name: row[name] for name in Verdict.__dataclass_fields__}) for row in said]


def rules(
    file: str | os.PathLike[str] | None = None, *, uses: str | None = None, family: str | None = None, shrinks: bool = False
) -> list[Rule]:
    """The rules of a rule file, by default of the set that comes with Graft."""
    arguments = ["rules"]
    arguments += [f"--uses={uses}"] if uses is not None else []
    arguments += [f"--family={family}"] if family is not None else []
    arguments += ["--shrinks"] if shrinks else []
    arguments += ["--", os.fspath(file)] if file is not None else []
    return [Rule(**{name: row[name] for name in Rule.__dataclass_fields__}) for row in _run(arguments, None, (0,))]
