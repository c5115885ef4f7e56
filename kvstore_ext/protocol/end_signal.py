"""SIGTERM: whoever runs this job wants its host back, as batch systems and Kubernetes say it."""
from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from types import FrameType
from typing import Callable, NoReturn, Optional

from ..config import notice
from ..launch_reports import launcher_listens, report

STATUS = 128 + signal.SIGTERM  # of a process that was told to end
TOLD = "told to end by SIGTERM"


def time_to_end() -> float:
    """Seconds in which the job must have come to where it can end. What is left of its notice is
    for the snapshot. Raises OptionError where the notice is malformed."""
    return notice() * 5 / 6


class EndSignal:
    """Notices SIGTERM in this process, even while the main thread is in C. Any thread may ask.

    `on_main` is what the main thread does when it is next in Python.
    """

    of_process: Optional[EndSignal] = None

    @classmethod
    def listen(cls, on_main: Callable[[], object]) -> None:
        """Has it noticed from now on, unless the script takes care of SIGTERM itself, or this is
        not the main thread."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            cls.of_process = cls()
        if cls.of_process is not None:
            cls.of_process._on_main = on_main

    def __init__(self) -> None:
        self._on_main: Callable[[], object] = exit_as_told
        self._came = False
        self._is_launched = launcher_listens()
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        signal.signal(signal.SIGTERM, self._take)
        before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        if before != -1:  # a script's own, of asyncio say: then only the main thread notices
            signal.set_wakeup_fd(before)
        os.register_at_fork(after_in_child=_forget)

    def came(self) -> bool:
        """Whether this process has been told to end. Does not return where a launcher says so that
        has hung up: nobody waits for what this process has to do yet."""
        if not self._came:
            with contextlib.suppress(BlockingIOError):
                # A script may have set a handler of its own since: then that alone decides.
                own = signal.getsignal(signal.SIGTERM) == self._take
                if signal.SIGTERM in self._reader.recv(4096) and own:
                    self._note()
        return self._came

    def _take(self, _number: int, _frame: Optional[FrameType]) -> None:
        if EndSignal.of_process is not self:  # a fork, whose script's own handler calls this one
            exit_as_told()
        self._note()
        self._on_main()

    def _note(self) -> None:
        if self._is_launched and not launcher_listens():
            os._exit(STATUS)
        if not self._came:
            self._came = True
            report(told=True)


def was_told() -> bool:
    """Whether this process has been told to end, and listens."""
    return EndSignal.of_process is not None and EndSignal.of_process.came()


def exit_as_told() -> NoReturn:
    """Ends the script, as an exception that it need not know."""
    raise SystemExit(STATUS)


def _forget() -> None:
    """A fork, as of a DataLoader, is ended by SIGTERM as any process is, unless the script has
    taken care of that itself meanwhile."""
    of_parent, EndSignal.of_process = EndSignal.of_process, None
    if of_parent is None:
        return
    if signal.getsignal(signal.SIGTERM) == of_parent._take:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)  # also a script's own, which wakes the parent's loop
