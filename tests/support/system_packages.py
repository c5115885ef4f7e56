"""Programs that tests need and pip does not have: without them tests are skipped, and the last line
of a session names the packages that have them."""
from __future__ import annotations

import os
import shutil
from typing import Iterable

import pytest

from tests.support.paths import ROOT

LIST = ROOT / "requirements" / "debian.txt"
_REASON = "needs Debian's "


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
    named = {package for reason in reasons for package in reason.partition(_REASON)[2].split()}
    if not named:
        return None
    packages = " ".join(sorted(named))
    return f"Skipped were tests that need packages; as root: apt-get install {packages}"


def _packages() -> dict[str, str]:
    lines = (line.split() for line in LIST.read_text().splitlines() if not line.startswith("#"))
    return {program: package for program, package, _ in lines}
