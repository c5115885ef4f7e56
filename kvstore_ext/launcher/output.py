"""What is printed: what processes say, on the terminal and in a log file each, and answers."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections import deque
from pathlib import Path
from typing import Mapping

from .log import Log
from .terminal import Terminal

LAST_LINES = 20
# Of a process that has said why it fails, at most: what it prints then is shown at the end.
_LINES_OF_FAILURE = 200
_HELD = 1 << 20  # bytes: more than that is no error
DEFAULT_LOGS = "launch-logs"  # in the working directory, with a directory for each job
# A line longer than this is shown in pieces, so that no process can fill the launcher's memory.
_LONGEST = 65536


def open_missing_streams() -> None:
    """Opens /dev/null in place of the standard streams that the launcher was started without, as by
    `>&-`: a log or a connection would get their numbers, and what is said with them."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # as the lowest
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def note(text: str) -> None:
    """Says something in the launcher's own name before there is a job; then `Screen.note` does."""
    with contextlib.suppress(OSError):
        print(f"launch: {text}", file=sys.stderr, flush=True)


def show(text: str) -> None:
    """Prints the answer to a question. Where nobody reads on, as after `| head`, that ends the
    process as it ends other programs, by SIGPIPE; Python would ignore that and raise.
    """
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(text, flush=True)
    signal.signal(signal.SIGPIPE, before)


class LogError(Exception):
    """A log lacks something, as where the disk of the launcher's host was full."""


def make_log_directory(path: str) -> None:
    """Makes it where it is not there; raises OSError, also where a link on the way there belongs to
    somebody other than this user or root."""
    _refuse_links_of_others(Path(path))  # nothing shall be made behind one
    os.makedirs(path, exist_ok=True)
    _refuse_links_of_others(Path(path))


def _refuse_links_of_others(path: Path) -> None:
    for place in (path, *path.parents):
        if place.is_symlink() and place.lstat().st_uid not in (0, os.geteuid()):
            text = f"{place} is a link that another user has put there"
            raise PermissionError(errno.EPERM, text, str(place))


class Sink:
    """Takes the output of one process, in pieces as they come, for its log and the terminal."""

    def __init__(self, name: str, log_dir: str, terminal: Terminal) -> None:
        self.path = _log_path(name, log_dir)
        self._terminal = terminal
        self._view = terminal.view(name)
        self._log = Log(self.path, self._say_what_log_lacks)
        self._closed = False
        self._unfinished = b""
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)
        self._shown: deque[int] = deque(maxlen=LAST_LINES)  # the terminal's count before each
        self._held: bytearray | None = None  # what the terminal does not show yet
        self._lines_held = 0

    def hold(self) -> None:
        """Has the terminal wait for what comes: an error perhaps, of which others print an echo."""
        if self._held is None:
            self._held = bytearray()
            self._shown.clear()
            self._last = deque(self._last, maxlen=_LINES_OF_FAILURE)

    def release(self) -> None:
        """Shows what the terminal waits for, unless the sink is closed: it was no error."""
        held, self._held, self._lines_held = self._held, None, 0
        if held and not self._closed:
            self._display(bytes(held))

    def write(self, data: bytes) -> None:
        """Raises OSError when nobody reads standard output any more. Where that or the log takes
        nothing, as on a full disk, the job is well: what is printed meanwhile is missing there."""
        self._log.write(data)
        if self._view.as_it_comes:
            self._display(data)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        if len(self._unfinished) > _LONGEST:
            lines.append(self._unfinished)
            self._unfinished = b""
        self._show(lines)

    def _say_what_log_lacks(self, why: str) -> None:
        self._terminal.screen.note(
            f"{self._place} takes nothing: {why}; the job goes on, and what is printed until it "
            "does will be missing in it"
        )

    @property
    def _place(self) -> str:
        return f"the log {self.path} of the launcher's host"

    def complain(self, data: bytes) -> None:
        """Takes what ssh or the interpreter says: worth showing, not worth failing for."""
        with contextlib.suppress(OSError):
            self.write(data)

    def close(self, latest: float) -> None:
        """Returns once its log is written, or at that time at the latest, of time.monotonic();
        raises LogError where that lacks something, or may lack its end."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._show([self._unfinished] if self._unfinished else [])
        self._unfinished = b""
        amiss = self._log.close(latest)
        if amiss:
            raise LogError(f"{self._place} {amiss}")

    def last_lines(self) -> list[str]:
        """Returns the last lines, the unfinished one too; of a process that has said why it fails,
        all since then."""
        lines = [*self._last, self._unfinished] if self._unfinished else [*self._last]
        count = max(LAST_LINES, self._lines_held)
        return [line.decode(errors="replace") for line in lines[-count:]]

    @property
    def is_on_screen(self) -> bool:
        """Whether a terminal still shows the last lines."""
        if self._unfinished or not self._shown:
            return False
        below = self._terminal.lines - self._shown[0]
        # With the launcher's own lines about a failure below them.
        room = below <= self._terminal.rows - 3
        return room and len(self._shown) == min(len(self._last), LAST_LINES)

    def _show(self, lines: list[bytes]) -> None:
        # A progress bar draws over itself after each "\r"; what counts is how it looked last.
        lines = [line.rstrip(b"\r").rpartition(b"\r")[2] for line in lines]
        self._last.extend(lines)
        self._lines_held += len(lines) if self._held is not None else 0
        lines = [line for line in lines if not self._terminal.leaves_out(line)]
        if lines and self._view.by_lines:
            if self._held is None:
                self._shown.extend(range(self._terminal.lines, self._terminal.lines + len(lines)))
                self._terminal.lines += len(lines)
            text = b"".join(self._view.prefix + line + b"\n" for line in lines)
            self._display(text)

    def _display(self, data: bytes) -> None:
        if self._held is None:
            self._terminal.screen.write(data)
            return
        self._held += data
        if len(self._held) > _HELD:
            self.release()

    def move(self, path: str, name: str) -> None:
        """Goes on as the sink of this name, with its log file under this path."""
        os.rename(self.path, path)
        self.path = path
        self._view = self._terminal.view(name)


def rename(names: Mapping[Sink, str]) -> None:
    """Gives sinks of one directory new names, which others of them may have had."""
    paths = {sink: _log_path(name, os.path.dirname(sink.path)) for sink, name in names.items()}
    changed = {sink: path for sink, path in paths.items() if path != sink.path}
    for sink, path in changed.items():
        sink.move(f"{path}.new", names[sink])
    for sink, path in changed.items():
        sink.move(path, names[sink])


def _log_path(name: str, log_dir: str) -> str:
    return os.path.join(log_dir, name.replace(" ", "-") + ".log")
