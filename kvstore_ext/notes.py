"""What a process says of itself on standard error: a line at a time, with the package's name."""
from __future__ import annotations

import contextlib
import sys


def say(text: str) -> None:
    """Says it, unless nobody listens any more: whoever has closed standard error, as a pipe's
    reader or a connection by ssh, is not to keep the caller from what it has to do next."""
    with contextlib.suppress(OSError, ValueError):
        print(f"kvstore_ext: {text}", file=sys.stderr, flush=True)
