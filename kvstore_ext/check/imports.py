"""What is known of numpy, mxnet and kvstore_ext, of which none may be importable."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict

from ..mxnet_hooks.before_import import ENGINE_VARIABLES

_ATTEMPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attempt.py")
_LIMIT = 120.0  # seconds; importing mxnet takes 2, from a slow disk 30

Facts = Dict[str, Any]


def try_imports() -> dict[str, Facts]:
    """What attempt.py learns of numpy, mxnet and kvstore_ext, by name.

    A name is missing where one before it could not be imported. kvstore_ext always is there: it
    mends what mxnet alone fails of, so it is tried by itself where mxnet fails.
    """
    facts = _attempt("numpy", "mxnet", "kvstore_ext")
    if "kvstore_ext" not in facts:
        facts.update(_attempt("kvstore_ext"))
    return facts


def _attempt(*names: str) -> dict[str, Facts]:
    try:
        ended = subprocess.run(
            [sys.executable, _ATTEMPT, *names],
            env={**ENGINE_VARIABLES, **os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT,
        )
    except subprocess.TimeoutExpired as late:
        return _parse(names, late.stdout or b"", f"is not done after {_LIMIT:g} s")
    lines = ended.stderr.decode(errors="replace").split("\n")
    last = [line.strip() for line in lines if line.strip()][-1:]
    how = ": ".join([f"ended with status {ended.returncode}", *last])
    return _parse(names, ended.stdout, how)


def _parse(names: tuple[str, ...], output: bytes, how: str) -> dict[str, Facts]:
    """Reads the answers; the first that is missing is what the process ended of."""
    facts: dict[str, Facts] = {}
    for line in output.splitlines():
        answer = json.loads(line)
        facts[answer.pop("name")] = answer
    missing = [name for name in names if name not in facts]
    if missing and not any("error" in each for each in facts.values()):
        facts[missing[0]] = {"error": f"the process that imported it {how}"}
    return facts
