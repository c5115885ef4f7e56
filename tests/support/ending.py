"""Has interpreters that tests start end with the tests, however these end."""
from __future__ import annotations

import os
import threading
from typing import Callable

from benchmarks.replay.forking import die_with


def with_parent() -> Callable[[], None] | None:
    """What a process is to do before its program, as subprocess's preexec_fn.

    None in a thread of its own, since the kernel kills the process when that thread ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    parent = os.getpid()
    return lambda: die_with(parent)
