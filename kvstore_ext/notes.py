"""What a process says on standard error: a line at a time of itself, and warnings of its script."""
from __future__ import annotations

import contextlib
import sys
import warnings
from types import FrameType
from typing import Optional

# Whose frames lie between a script's line and what is to be said of it: Trainer and Module call
# stores, and contextlib ends a block of theirs.
_BETWEEN = ("kvstore_ext", "mxnet", "contextlib")


def say(text: str) -> None:
    """Says it, unless nobody listens any more: whoever has closed standard error, as a pipe's
    reader or a connection by ssh, is not to keep the caller from what it has to do next."""
    with contextlib.suppress(OSError, ValueError):
        print(f"kvstore_ext: {text}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """What another process says, for a terminal or a log: without control characters and halves of
    characters, as the core shows it (csrc/support/printable.h)."""
    return "".join(letter if _is_shown(letter) else "?" for letter in text)


def warn_script(text: str) -> None:
    """Warns with the line of the script, however many calls of ours and of MXNet it is away."""
    level = 1
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None and _package_of(frame) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def _is_shown(letter: str) -> bool:
    control = letter < " " or "\x7f" <= letter < "\xa0"
    return letter in "\n\t" or not (control or "\ud800" <= letter <= "\udfff")


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
