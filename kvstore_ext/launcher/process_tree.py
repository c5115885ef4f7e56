"""Who descends from whom. Linux only, as the job's processes are.

A process group is not enough to end a process with all that it started: a grandchild may have
made a group or a session of its own. So the supervisor declares itself "child subreaper": orphans
below it become its children instead of init's, and every descendant stays findable by walking the
parents that /proc names.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def adopt_orphans() -> None:
    """Makes every orphaned descendant a child of the calling process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Has the kernel kill the calling process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(ancestor: int) -> list[int]:
    """Returns the ids of the living processes below `ancestor`, parents before children.

    A process that has ended and only waits for its parent to notice is not among them.
    """
    children: dict[int, list[int]] = {}
    zombies = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as status:
                # "id (name) state parent ...", where the name may hold blanks and brackets.
                state, parent = status.read().rpartition(b")")[2].split()[:2]
        except OSError:  # it has ended, or is another user's where these are hidden
            continue
        children.setdefault(int(parent), []).append(int(entry))
        if state in (b"Z", b"X"):
            zombies.add(int(entry))
    found: list[int] = []
    generation = children.get(ancestor, [])
    while generation:
        found += [process for process in generation if process not in zombies]
        generation = [child for process in generation for child in children.get(process, [])]
    return found


def signal_all(processes: list[int], number: int) -> None:
    """Sends a signal to each process that is still there and is not another user's."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
