"""Packs the program, its data and the module graft as a Python wheel.

    python3 packaging/wheel.py PROGRAM INSTALLED VERSION OUT

INSTALLED is what `make install` put into an empty PREFIX. The libraries that the program links with
go along, with their copyright files, but for those that every Linux of the wheel's tag has (PEP 600);
the program looks for them in ../lib. The same files give the same bytes. Prints the wheel's path."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What manylinux lets a wheel expect (PEP 600).
EXPECTED = {
    "linux-vdso.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1",
    "libstdc++.so.6", "ld-linux-x86-64.so.2",
}
METADATA = """Metadata-Version: 2.1
Name: graft-onnx
Version: {version}
Summary: Proved graph substitutions for neural networks
License: MIT
Keywords: onnx,optimization,verification
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{description}"""
DESCRIPTION = """# Graft

Rewrites ONNX models by graph substitutions that are proved for all sizes, chosen by measured costs, and
proves or refutes rules that you write.

```python
import graft

done = graft.optimize("model.onnx", "faster.onnx", check=3)
print(done.cost_ns_before, done.cost_ns_after)
```

The program is built for x86-64-v3 (processors with AVX2), and says so on older ones. `graft help` lists
what else it does.
"""


def libraries(program: Path) -> dict[str, Path]:
    """The shared libraries to take along, by the names that the loader looks for."""
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    if "not found" in text:
        raise SystemExit(f"{program} lacks a library:\n{text}")
    found = re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE)
    return {name: Path(path).resolve() for name, path in found if name not in EXPECTED}


def copyright_of(library: Path) -> "tuple[str, bytes]":
    """The name and the copyright file of the Debian package that a library is from. Others' work goes
    along with its licence or not at all."""
    for path in (library, Path(str(library).removeprefix("/usr"))):
        owner = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True).stdout.split(":")[0]
        text = Path("/usr/share/doc") / owner / "copyright"
        if owner and text.is_file():
            return owner, text.read_bytes()
    raise SystemExit(f"{library}: no Debian package that has it was found, so its licence is not known")


def gather(program: Path, installed: Path, version: str) -> "list[tuple[str, bytes, int]]":
    """(name in the wheel, content, mode) of all files but RECORD."""
    info = f"graft_onnx-{version}.dist-info"
    files = [(f"graft/{path.name}", path.read_bytes(), 0o644) for path in sorted((HERE / "python/graft").glob("*.*"))]
    files.append(("graft/VERSION", f"{version}\n".encode(), 0o644))
    files.append(("graft/bin/graft", program.read_bytes(), 0o755))
    for folder in ("include", "share/graft"):
        for path in sorted((installed / folder).rglob("*")):
            if path.is_file():
                mode = 0o755 if os.access(path, os.X_OK) else 0o644  # Devices are programs.
                files.append((f"graft/{path.relative_to(installed)}", path.read_bytes(), mode))
    copyrights: "dict[bytes, set[str]]" = {}
    for name, path in sorted(libraries(program).items()):
        files.append((f"graft/lib/{name}", path.read_bytes(), 0o755))
        owner, text = copyright_of(path)
        copyrights.setdefault(text, set()).add(owner)
    for text, owners in copyrights.items():
        files.append((f"{info}/licenses/{'+'.join(sorted(owners))}", text, 0o644))
    files.append((f"{info}/licenses/LICENSE", (HERE.parent / "LICENSE").read_bytes(), 0o644))
    files.append((f"{info}/METADATA", METADATA.format(version=version, description=DESCRIPTION).encode(), 0o644))
    files.append((f"{info}/entry_points.txt", b"[console_scripts]\ngraft = graft.__main__:main\n", 0o644))
    files.append((f"{info}/top_level.txt", b"graft\n", 0o644))
    return files


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main() -> None:
    program, installed, version, out = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0.0").split()[1].replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{os.uname().machine}"
    info = f"graft_onnx-{version}.dist-info"
    files = gather(program, installed, version)
    wheel = f"Wheel-Version: 1.0\nGenerator: graft\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files.append((f"{info}/WHEEL", wheel.encode(), 0o644))
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"graft_onnx-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    print(path)


if __name__ == "__main__":
    main()
