"""The live heap of a process: what tells a leak from a heap that is cut into pieces, or a queue of
ZeroMQ's that fills for the first time."""
from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path

_SECONDS = 1.0  # from one look to the next


class _MallInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def live() -> int:
    """Bytes of this process that were allocated and not freed."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallInfo
    found = libc.mallinfo2()
    return int(found.uordblks + found.hblkhd)


def tell(directory: str) -> None:
    """From now on says again and again how much is live here."""
    process = os.getpid()

    def run() -> None:
        while True:
            new = Path(directory, f"{process}.new")
            new.write_text(str(live()))
            new.replace(Path(directory, str(process)))
            time.sleep(_SECONDS)

    threading.Thread(target=run, daemon=True, name="tell heap").start()


def told(directory: str, process: int) -> int:
    """What a process has said last."""
    return int(Path(directory, str(process)).read_text())
