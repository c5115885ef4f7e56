"""Looks once a second at what a job's processes report, for who watches it.

The job's figures (status.py) lie in its log directory as JSON (status_file.py), where
`kvstore-launch top` finds them. The file stays when the job is over.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Callable, Sequence

from .log import CLOSE_LIMIT
from .running import Running
from .screen import Screen
from .status import Row, Status, line
from .status_file import StatusFile

NAME = "status.json"
EVERY = 1.0  # seconds
_EVERY_IN_A_LOG = 30.0


class Watching:
    """Follows all attempts at a job; `directory` is that of its logs."""

    def __init__(self, directory: str) -> None:
        self._file = StatusFile(os.path.join(directory, NAME))
        self._running: Sequence[Running] = []
        self._status = Status()
        self._latest: Row = self._status.look([])
        self._said = time.monotonic()
        self._broken = False

    def follow(self, running: Sequence[Running]) -> None:
        """Looks at these processes from now on, which grow in number while a job starts."""
        self._running = running
        self._status = Status()
        self._look()

    def latest(self) -> Row:
        """Returns the last figures, which nobody changes. Any thread may call it."""
        return self._latest

    async def watch(self, screen: Screen | None, say: Callable[[str], None]) -> None:
        """Goes on until it is cancelled; shows a line on a screen, if there is one for it.

        A mistake of ours ends no job: `say` takes it, and there are no further figures.
        """
        try:
            while True:
                await asyncio.sleep(EVERY)
                self._look()
                if screen is not None:
                    self._show(screen)
        except Exception as error:
            self._broken = True
            say(f"the job goes on, but its figures end here: {error!r}")

    def conclude(self, failure: str) -> None:
        """Writes that the job is over, and why it has failed: empty where it has not."""
        self._look()
        self._latest = {**self._latest, "state": "over", "failure": failure}
        self._file.write(self._latest)
        self._file.wait(CLOSE_LIMIT)

    def _look(self) -> None:
        if self._broken:
            return
        self._latest = self._status.look(self._running)
        self._file.write(self._latest)

    def _show(self, screen: Screen) -> None:
        if sys.stderr.isatty():
            # In one row: what is longer could not be drawn over. Some terminals have no size.
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            screen.show_line(line(self._latest, columns - 1))
        elif time.monotonic() - self._said >= _EVERY_IN_A_LOG:
            self._said = time.monotonic()
            screen.note(line(self._latest))
