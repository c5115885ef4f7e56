"""How the launcher's standard output shows what each process prints."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Mapping, TextIO

from .screen import Screen

# ANSI's cyan, yellow, green, magenta and blue for workers in turn; the others are grey.
_WORKERS = (36, 33, 32, 35, 34)
_OTHERS = 90


@dataclass(frozen=True)
class View:
    """How one process is shown: line by line behind a prefix, byte by byte, or not at all."""

    by_lines: bool
    as_it_comes: bool
    prefix: bytes


class Terminal:
    """`only` is the rank of the one worker to show; None shows all processes."""

    def __init__(self, only: int | None = None) -> None:
        self.screen = Screen()
        self._only = only
        self._coloured = takes_colours(sys.stdout, os.environ)

    def view(self, name: str) -> View:
        r"""Returns how the process of this name is shown.

        One alone is shown as it comes: a progress bar then draws over itself after each "\r".
        """
        alone = name == f"worker {self._only}"
        by_lines = self._only is None
        return View(by_lines, alone, _prefix(name, self._coloured))


def takes_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Returns whether it is a terminal with colours, whose user wants them (no-color.org)."""
    wanted = not environment.get("NO_COLOR") and environment.get("TERM", "dumb") != "dumb"
    return wanted and stream.isatty()


def _prefix(name: str, coloured: bool) -> bytes:
    role, _, rank = name.partition(" ")
    if not coloured:
        return f"[{name}] ".encode()
    colour = _WORKERS[int(rank) % len(_WORKERS)] if role == "worker" else _OTHERS
    return f"\x1b[{colour}m[{name}]\x1b[0m ".encode()
