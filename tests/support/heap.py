"""The live heap of a process, which tells a leak from memory that is cut into pieces."""
from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Sequence

_LIMIT = 120.0  # seconds for a process to tell
_PAUSE = 0.1  # seconds, after which somebody who asks is heard
_ASKED = "asked"


class _MallInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


@lru_cache(maxsize=None)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)  # a new one each time would leave garbage behind
    libc.mallinfo2.restype = _MallInfo
    return libc


def live() -> int:
    """Bytes of this process that were allocated and not freed."""
    found = _libc().mallinfo2()
    return int(found.uordblks + found.hblkhd)


def tell(directory: str) -> None:
    """From now on says how much is live here, without garbage, whenever somebody asks."""
    process = os.getpid()

    def run() -> None:
        said = 0
        while True:
            time.sleep(_PAUSE)
            asked = _number(Path(directory, _ASKED))
            if asked > said:
                said = asked
                gc.collect()
                _write(Path(directory, str(process)), f"{said} {live()}")

    threading.Thread(target=run, daemon=True, name="tell heap").start()


def ask(directory: str, processes: Sequence[int]) -> dict[int, int]:
    """What each of these processes tells now."""
    number = _number(Path(directory, _ASKED)) + 1
    _write(Path(directory, _ASKED), str(number))
    latest = time.monotonic() + _LIMIT
    files = {process: Path(directory, str(process)) for process in processes}
    for process, file in files.items():
        while _number(file) < number:
            assert time.monotonic() < latest, f"process {process} does not tell of its heap"
            time.sleep(_PAUSE / 10)
    return {process: int(file.read_text().split()[1]) for process, file in files.items()}


def _number(file: Path) -> int:
    """The first one in a file, 0 where there is none."""
    return int(file.read_text().split()[0]) if file.exists() else 0


def _write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)
