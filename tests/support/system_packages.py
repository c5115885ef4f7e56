"""What tests need and pip does not have: programs, whose packages the last line of a session names
where tests were skipped without them, and for some tests root."""
from __future__ import annotations

import os
import re
import shutil
from typing import Iterable

import pytest

from tests.support.paths import ROOT

LIST = ROOT / "requirements" / "debian.txt"
_REASON = "needs Debian's "
_PYTHON = re.compile(r"python3\.\d+")
_ROOT = "needs root, to make network namespaces or to read the network"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason=_ROOT)


def need(*programs: str) -> list[str]:
    """Returns the programs' paths; skips the test where one is missing."""
    # Debian keeps some where only root's PATH looks.
    path = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    found = {program: shutil.which(program, path=path) for program in programs}
    absent = [program for program, place in found.items() if place is None]
    if absent:
        packages = _packages()
        pytest.skip(_REASON + " ".join(packages[program] for program in absent))
    return [place for place in found.values() if place is not None]


def last_line(reasons: Iterable[str]) -> str | None:
    """What to say of the reasons for which tests were skipped."""
    reasons = list(reasons)
    named = {package for reason in reasons for package in reason.partition(_REASON)[2].split()}
    pythons = {found[0] for reason in reasons if (found := _PYTHON.search(reason))}
    said = []
    if pythons:
        said.append(f"that need {', '.join(sorted(pythons))}")
    if any(reason.endswith(_ROOT) for reason in reasons):
        said.append(_ROOT.replace("needs", "that need"))
    if named:
        packages = " ".join(sorted(named))
        said.append(f"that need packages; as root: apt-get install {packages}")
    return f"Skipped were tests {', and '.join(said)}" if said else None


def _packages() -> dict[str, str]:
    lines = (line.split() for line in LIST.read_text().splitlines() if not line.startswith("#"))
    return {program: package for program, package, _ in lines}
