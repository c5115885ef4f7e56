"""What examples import is what `pip install '.[examples]'` brings."""
from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from typing import Iterator

from tests.support.paths import EXAMPLES, ROOT

# What is there without that extra.
INSTALLED = {"kvstore_ext", "gluon_models", "mxnet", "numpy"}
NAMED_OTHERWISE = {"sklearn": "scikit-learn", "babel": "Babel"}


def imported() -> Iterator[str]:
    for file in EXAMPLES.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]


def is_package(name: str) -> bool:
    """Whether it is neither ours nor of the standard library."""
    found = find_spec(name)
    return found is None or "site-packages" in str(found.origin)


def test_the_extra_has_what_examples_import() -> None:
    needed = {NAMED_OTHERWISE.get(name, name) for name in set(imported()) - INSTALLED
              if is_package(name)}
    extra = re.search(r"^examples = (\[.*?\])$", (ROOT / "pyproject.toml").read_text(),
                      re.MULTILINE | re.DOTALL)
    assert extra
    assert {re.match(r"[\w-]+", name)[0] for name in ast.literal_eval(extra[1])} == needed
