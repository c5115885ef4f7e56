"""Runs one process for the launcher and ends it, with all it started, when the launcher is gone.

Standard input and output lead to the launcher (see protocol). They are a pipe here, an ssh
connection to another host, or a socket. Whatever happens to the launcher, the input ends, and then
the process and its descendants get SIGTERM and, GRACE seconds later, SIGKILL. With "patience" they
get SIGTERM only if they have not ended by themselves after so many seconds. With "takes_input",
what else comes through the input goes to the process's own. With "silence" the launcher's host may
lose its power, of which a connection by ssh hears nothing: a launcher that has said nothing for so
many seconds is gone. SIGTERM, to the supervisor or by TELL, is passed on, and the process has
"notice" seconds. It goes to the descendant that has joined the cluster, if any, and then to the
process itself: a shell in between would end at once, and all it has started with it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import select
import signal
import socket
import subprocess
import time
from types import FrameType
from typing import Any

from . import network, orders, process_tree, report_socket
from .environment import TRACE
from .protocol import DEFAULT_NOTICE, GREETING, TELL, Message, encode, write_all
from .trace_files import TraceFiles

GRACE = 3.0
# A process in the middle of a system call on a dead disk does not even obey SIGKILL.
GIVE_UP = 5.0
_LOOK = 0.1  # seconds between looks for a descendant, of whose end nobody hears

_INPUT, _OUTPUT = 0, 1
# A pipe holds 64 KiB, and 1 MiB at most. Reading just as much leaves nothing of what a process
# wrote before its end, and does not go on for ever when its descendants keep writing.
_PIECE = 65536
_PIPE_PIECES = 16
# More than Linux keeps for a socket, of reports that are small and many.
_REPORT_ROUNDS = 16
_END_SIGNALS = (signal.SIGINT, signal.SIGHUP)


def main() -> int:
    """Returns 0 once no descendant is left, 1 when one could not be ended."""
    process_tree.adopt_orphans()
    key = os.environ.pop(orders.NAME, "")
    proved = orders.Orders(key) if key else None
    write_all(_OUTPUT, GREETING + encode({"host": socket.gethostname()}))
    # Unbuffered: a supervisor looks for later orders at the descriptor itself.
    for line in iter(io.FileIO(_INPUT, closefd=False).readline, b""):
        try:
            order = _order(line, proved)
            if "run" in order:
                return Supervisor(**order["run"]).supervise()
            write_all(_OUTPUT, encode({"reserved": reserve(**order["reserve"])}))
        except ValueError as error:
            write_all(_OUTPUT, encode({"error": str(error), "status": 1}))
        except OSError as error:
            status = 127 if isinstance(error, FileNotFoundError) else 126
            text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
            passes = error.errno in (errno.EAGAIN, errno.ENOMEM)  # with what else the host does
            write_all(_OUTPUT, encode({"error": text, "status": status, "passes": passes}))
    return 0


def _order(line: bytes, proved: orders.Orders | None) -> Message:
    """Raises ValueError for what the launcher has not said."""
    try:
        order = json.loads(line.decode())
    except RecursionError:
        raise ValueError("an order is nested too deeply") from None
    if not isinstance(order, dict):
        raise ValueError(f"an order is a JSON object; found {str(order)[:60]!r}")
    return proved.check(order) if proved else order


def reserve(
    address: str | None,
    interface: str | None,
    towards: str | None,
    port: int,
    share: int,
    shares: int,
) -> Message:
    """Returns the address and port that a process on this host is to have.

    The address is the one given, or the interface's, or the one seen from `towards`, or this host's
    own. Raises ValueError when the interface is unknown or the port taken.
    """
    if address is None and interface is not None:
        address = network.address_of(interface)
    if address is None and towards is not None:
        address = network.address_towards(towards)
    if address is None:
        address = network.own_address(os.environ.get("SSH_CONNECTION"))
    return {"address": address, "port": network.free_port(address, port, share, shares)}


class Supervisor:
    """One process, from its start until none of its descendants is left.

    `environment` is laid over the supervisor's own; None takes a variable away. Raises OSError
    when the command cannot be run or the directory is not there.
    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str | None],
        directory: str,
        patience: float = 0.0,
        takes_input: bool = False,
        silence: float | None = None,
        trace: Message | None = None,
        notice: float = DEFAULT_NOTICE,
    ) -> None:
        merged: dict[str, Any] = {**os.environ, **environment}
        self._patience = patience
        self._silence = silence
        self._notice = notice
        self._heard = time.monotonic()  # of the launcher
        self._trace: TraceFiles | None = None
        traced = environment.get(TRACE)
        if traced is not None:
            # The launcher may know no more than where below the process's directory that is.
            traced = merged[TRACE] = os.path.abspath(os.path.join(directory, traced))
            if trace is not None:
                self._trace = TraceFiles(traced, trace["mark"])
        self._launcher_there = True
        self._told_since: float | None = None
        self._unsaid: list[Message] = []  # reports that the launcher has not been told yet
        self._joined: int | None = None  # who was told in the process's place
        self._end_asked = False
        self._wakeup = self._catch_signals()
        self._reports = report_socket.ReportSocket()
        merged[report_socket.NAME] = self._reports.path
        # A pipe of our own, rather than our output itself, as that may be a socket: a script
        # that opens /dev/stderr gets an error from a socket.
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._child = subprocess.Popen(
                command,
                cwd=directory,
                env={name: value for name, value in merged.items() if value is not None},
                stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                start_new_session=True,
                preexec_fn=process_tree.die_with_parent,
            )
        except OSError:
            self._reports.close()
            raise
        finally:
            os.close(write_end)
        os.set_blocking(_OUTPUT, False)

    def supervise(self) -> int:
        """Returns 0 once no descendant is left, 1 when one could not be ended."""
        while not self._end_asked and self._child.returncode is None:
            self._wait(self._told_left())
            self._end_asked |= self._told_left() == 0
            self._reap()
            if self._joined is not None and self._joined not in self._descendants():
                self._joined = None
                self._terminate()
        self._forward_reports()
        self._reports.close()  # by which the process knows that nobody waits for it any more
        left = self._end_descendants()
        self._reap()
        self._forward_output(_PIPE_PIECES)
        for message, payload in self._trace.messages() if self._trace else ():
            self._say(message, payload)
        if left:
            self._say({"left": left})
        signal.set_wakeup_fd(-1)  # Python closes the socket before it stops to take signals
        return 1 if left else 0

    def _told_left(self) -> float | None:
        """Returns the seconds for which to wait at most, of those in which the process may end by
        itself."""
        if self._told_since is None:
            return None
        left = max(0.0, self._told_since + self._notice - time.monotonic())
        return left if self._joined is None else min(left, _LOOK)

    def _end_descendants(self) -> list[int]:
        """Returns those that are still there when even SIGKILL has not ended them in time."""
        begun = time.monotonic() + self._patience
        told: set[int] = set()
        while True:
            left = self._descendants()
            passed = time.monotonic() - begun
            if not left or passed > GRACE + GIVE_UP:
                return left
            # SIGTERM first also when the process itself has ended: Python's resource tracker,
            # for one, ignores it, and gives back the shared memory of a process that was killed.
            if passed >= 0:
                new = [process for process in left if process not in told]
                process_tree.signal_all(new, signal.SIGTERM)
                told.update(new)
            if passed > GRACE:
                process_tree.signal_all(left, signal.SIGKILL)
            self._wait(0.05)
            self._reap()

    def _catch_signals(self) -> socket.socket:
        """Returns a socket on which the number of each signal arrives as a byte."""
        receiver, sender = socket.socketpair()
        receiver.setblocking(False)
        sender.setblocking(False)
        self._signal_sender = sender
        signal.set_wakeup_fd(sender.fileno())
        # Handlers, not SIG_IGN, which the process would inherit.
        for number in (signal.SIGCHLD, signal.SIGTERM, *_END_SIGNALS):
            signal.signal(number, _do_nothing)
        return receiver

    def _wait(self, limit: float | None) -> None:
        """Waits until something happens, takes it in, and passes output on."""
        wakeup = self._wakeup.fileno()
        reports = self._reports.fileno()
        watched = [wakeup, reports, self._pipe, *self._input()]
        limits = [each for each in (limit, self._patience_left()) if each is not None]
        limit = min(limits) if limits else None
        ready = select.select([each for each in watched if each != -1], [], [], limit)[0]
        # First: what follows may wait for the launcher, and then reads what it says meanwhile.
        if _INPUT in ready:
            self._pass_on(_read(_INPUT))
        if reports in ready:
            self._forward_reports()
        if self._pipe in ready:
            self._forward_output()
        if wakeup in ready:
            numbers = self._wakeup.recv(4096)
            self._end_asked |= any(number in numbers for number in _END_SIGNALS)
            if signal.SIGTERM in numbers:
                self._tell()
        if self._unsaid:
            self._forward_reports()
        self._look_for_silence()

    def _input(self) -> list[int]:
        """Returns what leads here from the launcher, while that matters."""
        return [] if self._end_asked else [_INPUT]

    def _patience_left(self) -> float | None:
        """Returns the seconds until the launcher counts as gone, unless it says something."""
        if self._silence is None or not self._launcher_there:
            return None
        return max(0.0, self._heard + self._silence - time.monotonic())

    def _look_for_silence(self) -> None:
        if self._patience_left() == 0:
            self._launcher_there = False
            self._end_asked = True

    def _pass_on(self, data: bytes) -> None:
        """Gives the process what has come for it; nothing is the end of the input."""
        self._heard = time.monotonic()
        if not data:
            self._end_asked = True
        elif self._child.stdin is None and TELL in data:
            self._tell()
        if self._child.stdin is not None:
            with contextlib.suppress(OSError):  # it reads no more, or has ended
                write_all(self._child.stdin.fileno(), data)

    def _tell(self) -> None:
        """Tells the process to end, by itself: it may be able to do so in order."""
        if self._told_since is None:
            self._told_since = time.monotonic()
            # One of them may be who joins. They are said later: a message may be half said now.
            self._unsaid += self._reports.receive()
            joining = self._reports.joining
            if joining != self._child.pid and joining in self._descendants():
                self._joined = joining
                process_tree.signal_all([joining], signal.SIGTERM)
            else:
                self._terminate()

    def _terminate(self) -> None:
        if self._child.returncode is None:
            # Popen's own would take its exit status from _reap, were it just to end.
            process_tree.signal_all([self._child.pid], signal.SIGTERM)

    def _descendants(self) -> list[int]:
        return process_tree.descendants(os.getpid())

    def _forward_output(self, pieces: int = 1) -> None:
        """Passes on what the process has written, at most so many pieces of it."""
        for _ in range(pieces):
            if self._pipe == -1:
                return
            try:
                data = os.read(self._pipe, _PIECE)
            except BlockingIOError:
                return
            if not data:
                os.close(self._pipe)
                self._pipe = -1
            else:
                # What it has said before it wrote this, such as why it fails, goes first.
                for _ in range(_REPORT_ROUNDS):
                    if self._forward_reports() < report_socket.AT_ONCE:
                        break
                self._say({"output": True}, data)

    def _forward_reports(self) -> int:
        """Passes on some of what has come, and returns how many they were."""
        facts = self._unsaid + self._reports.receive()
        self._unsaid = []
        for fact in facts:
            if self._trace is not None:
                self._trace.note(fact)
            self._say({"report": fact})
        return len(facts)

    def _say(self, message: Message, payload: bytes = b"") -> None:
        """Tells the launcher; a launcher that no longer listens has ended."""
        left = memoryview(encode(message, payload))
        while left and self._launcher_there:
            try:
                left = left[os.write(_OUTPUT, left) :]
                # Who has hung up gives no other sign than to take what it is told.
                if self._end_asked:
                    self._heard = time.monotonic()
            except BlockingIOError:
                heard = select.select(self._input(), [_OUTPUT], [], self._patience_left())[0]
                if heard:
                    self._pass_on(_read(_INPUT))
                self._look_for_silence()
            except OSError:
                self._launcher_there = False
                self._end_asked = True

    def _reap(self) -> None:
        """Collects the children, own and adopted, that have ended, and reports the own one."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self._child.pid:
                self._forward_reports()
                self._forward_output(_PIPE_PIECES)
                self._say({"ended": self._set_returncode(status)})

    def _set_returncode(self, status: int) -> Message:
        if os.WIFSIGNALED(status):
            self._child.returncode = -os.WTERMSIG(status)
            return {"signal": os.WTERMSIG(status)}
        self._child.returncode = os.WEXITSTATUS(status)
        return {"status": os.WEXITSTATUS(status)}


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Python calls it after the signal's number has gone to the wake-up socket."""


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""
