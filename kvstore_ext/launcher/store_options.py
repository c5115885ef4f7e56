"""Which options the stores have, as their sources say: the launcher imports none of those.

A method's options are the fields of its class (kvstore_ext/compression/options.py), and so are
those of every store (kvstore_ext/config.py). Those of a method that is added are known with it.
"""

from __future__ import annotations

import ast
import os
from glob import glob
from typing import Iterator

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SOURCES = ("config.py", "compression/*.py", "slim_dp/*.py")


def option_names() -> set[str]:
    """Returns them, with some fields that are none; nothing where the sources are not there."""
    found: set[str] = set()
    for pattern in _SOURCES:
        for path in glob(os.path.join(_PACKAGE, pattern)):
            with open(path, encoding="utf-8") as file:
                found.update(_fields(ast.parse(file.read())))
    return found


def _fields(tree: ast.AST) -> Iterator[str]:
    for made in ast.walk(tree):
        if isinstance(made, ast.ClassDef):
            for line in made.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield line.target.id
