"""`python -m kvstore_ext --check`, which has to work where importing kvstore_ext does not.

Python imports the package before its `__main__`, so the package calls this before all else.
"""
from __future__ import annotations

import os
import re
import sys

_ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")


def begin_check_if_asked() -> None:
    """Replaces this process by the check where Python was started as `-m kvstore_ext --check`."""
    # While `-m` looks for what to run, its name is not in sys.argv yet; the kernel has it.
    if sys.argv[:2] != ["-m", "--check"]:
        return
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")
    if re.fullmatch(rb"(-\w*m)?kvstore_ext", words[words.index(b"--check") - 1]):
        os.execv(sys.executable, [sys.executable, _ENTRY, *sys.argv[2:]])
