"""How the launcher's standard output shows what each process prints."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import Mapping, TextIO

from .screen import Screen

# ANSI's cyan, yellow, green, magenta and blue for workers in turn; the others are grey.
_WORKERS = (36, 33, 32, 35, 34)
_OTHERS = 90
# What each process of a secure job begins with (kvstore_ext/security/encryption.py).
_NOTE = re.compile(rb"kvstore_ext: this (worker|server|scheduler) encrypts with the job's key ")


@dataclass(frozen=True)
class View:
    """How one process is shown: line by line behind a prefix, byte by byte, or not at all."""

    by_lines: bool
    as_it_comes: bool
    prefix: bytes


class Terminal:
    """`only` is the rank of the one worker to show; None shows all processes. `quiet` leaves out
    what each of them notes of a secure job."""

    def __init__(self, only: int | None = None, quiet: bool = False) -> None:
        self.screen = Screen()
        self.lines = 0  # of processes, that it has been given
        self.rows = _rows()
        self._only = only
        self._quiet = quiet
        self._coloured = takes_colours(sys.stdout, os.environ)

    def view(self, name: str) -> View:
        r"""Returns how the process of this name is shown.

        One alone is shown as it comes: a progress bar then draws over itself after each "\r".
        """
        alone = name == f"worker {self._only}"
        by_lines = self._only is None
        return View(by_lines, alone, _prefix(name, self._coloured))

    def leaves_out(self, line: bytes) -> bool:
        """Returns whether this line is for the logs alone."""
        return self._quiet and _NOTE.match(line) is not None


def _rows() -> int:
    """Returns how many lines the terminal has that shows both of the launcher's streams; 0 where
    one of them goes elsewhere."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return 0
    return os.get_terminal_size(sys.stderr.fileno()).lines or 24


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
