"""The texts that the sources have in them, to look up what documents quote."""
from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterator

from .documents import ROOT

# Literals of C++ that follow each other, which are one text to the compiler.
_LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')


def texts() -> Iterator[str]:
    """All texts of the package but docstrings; `...` stands for each value that is filled in."""
    package = ROOT / "kvstore_ext"
    for file in sorted([*package.rglob("*.py"), *ROOT.glob("kvstore_*.py")]):
        yield from _of_python(file)
    for ending in ("cc", "h", "inc"):
        for file in sorted(package.rglob(f"*.{ending}")):
            yield from _of_cpp(file)


def _of_python(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "..."
                          for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _of_cpp(file: Path) -> Iterator[str]:
    for found in _LITERALS.findall(file.read_text(encoding="utf-8")):
        pieces = re.findall(r'"((?:[^"\\\n]|\\.)*)"', found)
        yield "".join(pieces).replace('\\"', '"')
