"""Commands that cannot be what the user meant, and what that may have been."""

from __future__ import annotations

import re
import shlex
import shutil
from typing import Sequence


def check_command(command: Sequence[str]) -> None:
    """Raises ValueError where the first word is no program, but looks like something else.

    Programs that are only on other hosts are none of these.
    """
    first, rest = command[0], shlex.join(command[1:])
    if shutil.which(first) is not None:
        return
    meant = ""
    if first.endswith(".py"):
        meant = f"python {shlex.quote(first)} {rest}"
    elif " " in first and not rest:
        meant = first
    elif re.match(r"[A-Za-z_][A-Za-z0-9_]*=", first):
        meant = f"--env {shlex.quote(first)} {rest}"
    if meant:
        raise ValueError(f"'{first}' is no program; did you mean: {meant.strip()}")
