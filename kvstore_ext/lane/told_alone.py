"""A process without a cluster that was told to end: it does so with snapshots if it takes any."""
from __future__ import annotations

import os
import threading
from typing import Any, Callable

from ..notes import say
from ..protocol.end_signal import LIMIT, STATUS, TOLD, EndSignal, was_told
from .end_of_script import EndOfScript


class ToldAlone(EndOfScript):
    """Listens from the first snapshot on: before, SIGTERM ends such a process as it ends others."""

    def __init__(self) -> None:
        super().__init__(rank=0)
        self._listens = False
        self._told = False
        self._over = False

    def offer(self, store: Any, directory: str, step: int, take: Callable[[], object]) -> None:
        super().offer(store, directory, step, take)
        if not self._listens:
            self._listens = True
            EndSignal.listen(self._on_main)

    def stop(self, seconds: float) -> None:
        self._over = True

    def comes_to_end(self) -> bool:
        """Whether the process was told to end, and so does after this step."""
        self.in_order = was_told()
        return self.in_order

    def _on_main(self) -> None:
        super()._on_main()
        if self._told:
            return
        self._told = True
        say(f"{TOLD}; the job ends after a snapshot")
        latest = threading.Timer(LIMIT, self._give_up)
        latest.daemon = True
        latest.start()

    def _give_up(self) -> None:
        """Ends the process, which may be in a call that nothing else ends."""
        if not self.in_order and not self._over:
            say(f"{TOLD}; the script has not come to its next snapshot in {LIMIT:g} s")
            os._exit(STATUS)

    def _is_over(self) -> bool:
        return self._over
