"""A process without a cluster that was told to end: it does so with snapshots if it takes any."""
from __future__ import annotations

import os
import threading
from typing import Any, Callable, ClassVar, Optional

from ..notes import say
from ..protocol.end_signal import STATUS, TOLD, EndSignal, time_to_end, was_told
from .end_of_script import BETWEEN_LOOKS, EndOfScript


class ToldAlone(EndOfScript):
    """Listens from the first snapshot on: before, SIGTERM ends such a process as it ends others.

    All stores of the process share one. A thread of its own sees to the time to end, as the script
    may be in a call that does not end.
    """

    _of_process: ClassVar[Optional[ToldAlone]] = None

    @classmethod
    def of_process(cls) -> ToldAlone:
        """The one that all open stores have; each stops it when it is closed."""
        if cls._of_process is None or cls._of_process._is_over():
            cls._of_process = cls()
        cls._of_process._stores += 1
        return cls._of_process

    def __init__(self) -> None:
        super().__init__(rank=0)
        self._time_to_end = time_to_end()
        self._stores = 0  # that are open
        self._process = os.getpid()  # a fork has neither the thread nor the signal's handler
        self._over = threading.Event()
        self._said = threading.Lock()  # taken by who says it first
        self._watching: Optional[threading.Thread] = None

    def offer(self, store: Any, directory: str, step: int, take: Callable[[], object]) -> None:
        super().offer(store, directory, step, take)
        if self._watching is None:
            EndSignal.listen(self._on_main)
            self._watching = threading.Thread(target=self._watch, daemon=True, name="told to end")
            self._watching.start()

    def stop(self, seconds: float) -> None:
        self._stores -= 1
        if self._stores > 0:
            return
        self._over.set()
        if self._watching is not None:
            self._watching.join(seconds)

    def comes_to_end(self) -> bool:
        """Whether the process was told to end, and so does after this step."""
        self.in_order = was_told()
        if self.in_order:
            self._say()
        return self.in_order

    def _watch(self) -> None:
        while not self._over.wait(BETWEEN_LOOKS):
            if was_told():
                if self._snapshots:
                    self._say()
                    self._give_up_in_time("come to its next snapshot")
                else:  # it ends where it is
                    self._give_up_in_time("ended")
                return

    def _say(self) -> None:
        if self._said.acquire(blocking=False):
            say(f"{TOLD}; the job ends after a snapshot")

    def _give_up_in_time(self, what: str) -> None:
        if not self._over.wait(self._time_to_end) and not self.in_order:
            say(f"{TOLD}; the script has not {what} in {self._time_to_end:g} s")
            os._exit(STATUS)

    def _is_over(self) -> bool:
        return self._over.is_set() or self._process != os.getpid()
