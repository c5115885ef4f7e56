"""Brings a trace's files from the hosts where processes write them to the launcher's.

The launcher leaves a mark in the trace's directory. Once a process has ended, its supervisor looks
for it: where the mark is, the files are at home already. They go compressed, since those of a
process that was killed are mostly zeros.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import zlib
from typing import Callable, Iterator

from .protocol import Message

_PIECE = 1 << 20  # bytes, before they are compressed
_NAME = re.compile(r"(worker|server)-\d+\.(events|json)")
_ENDINGS = (".events", ".json")
_UNFINISHED = ".part"


def check_directory(directory: str) -> None:
    """Raises ValueError where a trace lies there, or in directories below, which count as well."""
    for place, _, names in os.walk(directory):
        there = sorted(name for name in names if name.endswith(".events"))
        if there:
            raise ValueError(
                f"--trace: found the trace of an earlier job in {directory} "
                f"({os.path.join(place, there[0])}): take a new directory for each job, such as "
                f"--trace {_unused(directory)}"
            )


def _unused(directory: str) -> str:
    """Returns a name beside this one that nothing has."""
    base = directory.rstrip("/")
    number = 2
    while os.path.lexists(f"{base}-{number}"):
        number += 1
    return shlex.quote(f"{base}-{number}")


class TraceFiles:
    """At the supervisor: the files that its process writes.

    `directory` is the trace's on this host, and `mark` what the launcher calls its own one's.
    """

    def __init__(self, directory: str, mark: str) -> None:
        self._directory = directory
        self._mark = mark
        self._names: list[str] = []

    def note(self, report: Message) -> None:
        """Takes in what the process has reported, if it is about a trace of this directory."""
        path = report.get("traced")
        if isinstance(path, str) and _is_same(os.path.dirname(path), self._directory):
            self._names += [os.path.basename(path) + ending for ending in _ENDINGS]

    def messages(self) -> Iterator[tuple[Message, bytes]]:
        """Yields what the launcher is to be told, with its payload: nothing if the files are there.

        The last piece of a file is an empty one.
        """
        if os.path.exists(os.path.join(self._directory, self._mark)):
            return
        for name in self._names:
            with contextlib.suppress(OSError), open(
                os.path.join(self._directory, name), "rb"
            ) as file:
                data = b"more"
                while data:
                    data = file.read(_PIECE)
                    yield {"traced": name}, zlib.compress(data, 1)


class TraceCollection:
    """At the launcher: what has come from all hosts.

    Where the directory cannot be written to, files stay where they are, and `say` says so.
    """

    def __init__(self, directory: str, say: Callable[[str], None]) -> None:
        self._directory = directory
        self._say = say
        self._mark = f".launcher-{secrets.token_hex(8)}"
        self._begun: set[str] = set()
        self._broken = False
        self.taken = 0  # pieces so far
        with self._or_say():
            os.makedirs(directory, exist_ok=True)
            self._create(self._mark)

    def order(self) -> Message | None:
        """Returns a supervisor's order; None: it need not send anything."""
        return None if self._broken else {"mark": self._mark}

    def take(self, message: Message, payload: bytes) -> None:
        """Adds a piece; what is none does not count."""
        name = message["traced"]
        if self._broken or not isinstance(name, str) or not _NAME.fullmatch(name):
            return
        try:
            data = zlib.decompressobj().decompress(payload, _PIECE)
        except zlib.error:
            return
        self.taken += 1
        unfinished = os.path.join(self._directory, name + _UNFINISHED)
        with self._or_say():
            if name not in self._begun:
                self._begun.add(name)
                self._create(name + _UNFINISHED)
            with open(unfinished, "ab") as file:
                file.write(data)
            if not data:
                os.replace(unfinished, os.path.join(self._directory, name))
                self._begun.remove(name)

    def close(self) -> None:
        """Removes the mark; says which files have not come whole."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._directory, self._mark))
        for name in sorted(self._begun):
            self._say(f"{os.path.join(self._directory, name)} has not come whole from its host")

    def _create(self, name: str) -> None:
        """Makes an empty file, which is new: a link that somebody has put there is not followed."""
        path = os.path.join(self._directory, name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))

    @contextlib.contextmanager
    def _or_say(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._broken = True
            self._begun.clear()
            reason = f"{error.strerror}: {error.filename}"
            self._say(f"the trace's files stay on the hosts of their processes: {reason}")


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
