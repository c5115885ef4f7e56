"""Whether kvstore_ext could encrypt with a libmxnet.so, as far as its symbols tell.

`python -m tests.security.library_slots FILE` looks without loading it, as of an MXNet for GPUs on a
host that has none.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

from tests.support.paths import ROOT

_CORE = ROOT / "kvstore_ext" / "csrc"
_REPLACED = re.compile(r'slots->Replace\(\s*"(\w+)"')
_CALLED = re.compile(r'(?:bind|Find)\("(\w+)"|dlsym\(\s*library, "(\w+)"')


def replaced() -> set[str]:
    """The functions that are called through a slot which is rewritten."""
    sources = (_CORE / "security").glob("*.cc")
    return {name for path in sources for name in _REPLACED.findall(path.read_text())}


def called() -> set[str]:
    """Those that the core itself calls."""
    sources = (_CORE / "transport" / "libmxnet.cc", *(_CORE / "security").glob("*.cc"))
    found = {names for path in sources for names in _CALLED.findall(path.read_text())}
    return {one or other for one, other in found}


def slots_of(library: str) -> Counter[str]:
    """How many slots a library has for each name that it calls."""
    lines = _readelf("-r", library)
    return Counter(line.split()[4].partition("@")[0] for line in lines if len(line.split()) > 4)


def symbols_of(library: str) -> set[str]:
    """What it has for others."""
    lines = [line.split() for line in _readelf("--dyn-syms", library)]
    return {line[7].partition("@")[0] for line in lines if len(line) > 7 and line[6] != "UND"}


def lacks(library: str) -> list[str]:
    """What it lacks, or has otherwise than the core needs it, for people."""
    slots, symbols = slots_of(library), symbols_of(library)
    return [
        *(f"{slots[name]} slots of {name}" for name in sorted(replaced()) if slots[name] != 1),
        *(f"no {name}" for name in sorted(called() | replaced() - {"puts"}) if name not in symbols),
    ]


def _readelf(what: str, library: str) -> list[str]:
    command = ["readelf", "-W", what, library]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    missing = lacks(sys.argv[1])
    names = len(called() | replaced())
    said = f"has all {names} symbols, and one slot of each of {len(replaced())}"
    print("\n".join(missing) or said)
    sys.exit(1 if missing else 0)
