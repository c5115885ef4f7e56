"""A process that has been started, followed through its supervisor until it has ended."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Sequence

from .account import Account
from .environment import working_directory
from .hosts import Host
from .output import Sink
from .processes import NOT_RUN, Ending, Process, ended_with, killed_by
from .protocol import DEFAULT_NOTICE, SIGN, Link, Message
from .ranks import Endpoint
from .trace_files import TraceCollection

# Seconds after which a process that has said why it fails, and still runs, goes on by itself.
_CHANGE_OF_MIND = 10.0


class StartError(Exception):
    """A process could not be started.

    `status` is what the launcher is to exit with, `sink` has what was printed instead, and `host`
    is the one that could not be reached, or that lacks what is to run there (`missing`), if that is
    why. It is `final` where another attempt would end so as well: by default, unless it is a host's
    fault.
    """

    def __init__(
        self,
        text: str,
        status: int,
        sink: Sink | None = None,
        host: Host | None = None,
        final: bool | None = None,
        missing: bool = False,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.sink = sink
        self.host = host
        self.final = host is None if final is None else final
        self.missing = missing


def stands(processes: Sequence[Running]) -> bool:
    """Returns whether a job's cluster stands, for which all have come: whether anybody says so."""
    return any(each.account.joined.done() for each in processes)


def all_have_joined(processes: Sequence[Running]) -> bool:
    """Returns whether a job's workers have all joined, as far as they can say so: once the cluster
    stands, the reports of one that has said nothing do not arrive."""
    workers = [each.account for each in processes if each.process.role == "worker"]
    return stands(processes) and all(each.joined.done() or not each.joining for each in workers)


class Running:
    """One process of the job.

    `ended` is set to the Ending as soon as the process itself has ended, after all of its output.
    `was_stopped`: the launcher had it end. `gone` is done when nothing it started is left either.
    `account` is what it tells of itself.
    `silence`: seconds after which its supervisor gives up a launcher that gives no sign of life.
    `place` is the host of the hostfile that it runs on: the planned one unless srun chose another.
    """

    def __init__(
        self,
        process: Process,
        host: str,
        link: Link,
        sink: Sink,
        silence: float | None = None,
        place: Host | None = None,
    ) -> None:
        self.process = process
        self.host = host
        self.place = place or process.host
        self.link = link
        self.sink = sink
        self._silence = silence
        self._ending = False
        self.was_stopped = False
        self.left: list[int] = []  # processes on its host that not even SIGKILL has ended yet
        self.account = Account()
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gone.set_result(None)

    @property
    def title(self) -> str:
        return f"{self.process.name} on {self.host}"

    async def reserve(
        self,
        limit: float,
        share: int,
        shares: int,
        *,
        interface: str | None,
        towards: str | None,
        address: str | None = None,
        port: int = 0,
    ) -> Endpoint:
        """Asks for an address and port on the process's host; raises StartError with why not.

        The address is the one given, that of the interface, or the one that leads `towards`
        another. A port of 0 is a free one, out of the `share`-th of so many shares.
        """
        request = {
            "address": address,
            "interface": interface,
            "towards": towards,
            "port": port,
            "share": share,
            "shares": shares,
        }
        self.link.send({"reserve": request})
        try:
            received = await asyncio.wait_for(self.link.receive(), limit)
        except asyncio.TimeoutError:
            text, host = f"{self.title} does not answer", self.place
            raise StartError(text, 1, self.sink, host) from None
        if received is None:
            text = f"{self.title}: its supervisor has gone"
            raise StartError(text, 1, self.sink, self.place)
        if "error" in received[0]:
            message = received[0]
            # Of an interface or a route that may be back soon, or a port that may be free.
            raise StartError(f"{self.title}: {message['error']}", message["status"], final=False)
        try:
            return Endpoint(**received[0]["reserved"])
        except (KeyError, TypeError):
            text = f"{self.title}: its supervisor says {received[0]}"
            raise StartError(text, 1, self.sink) from None

    def run(
        self,
        environment: Message,
        patience: float = 0.0,
        takes_input: bool = False,
        collection: TraceCollection | None = None,
        notice: float = DEFAULT_NOTICE,
    ) -> None:
        """Has the supervisor start the process, in its directory or the launcher's working one.

        At the end the process has `patience` seconds to end by itself. One that takes input can be
        given it, by `link.send_raw`, once it has written something: no sooner, or the supervisor
        would read it with the order. A `collection` gets its files of a trace at the end. The
        process has `notice` seconds once it was told to end.
        """
        silence = None if takes_input else self._silence
        order = {
            "command": self.process.command,
            "environment": environment,
            "directory": self.process.directory or working_directory(),
            "patience": patience,
            "takes_input": takes_input,
            "silence": silence,
            "trace": collection and collection.order(),
            "notice": notice,
        }
        self.link.send({"run": order})
        self.gone = asyncio.ensure_future(self._follow(collection))
        if silence is not None:
            signs = asyncio.ensure_future(self._give_signs(silence / 12))
            self.gone.add_done_callback(lambda gone: signs.cancel())

    def end(self) -> None:
        """Has the supervisor end the process, whose last output can still come."""
        self._ending = True
        self.link.hang_up()

    async def _give_signs(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            self.link.give(SIGN)

    async def _follow(self, collection: TraceCollection | None) -> None:
        while True:
            received = await self.link.receive()
            if received is None:
                break
            try:
                self._hear(*received, collection)
            except (AttributeError, KeyError, TypeError, ValueError):  # of what no supervisor says
                break
        self.link.close()  # or a connection that only one side has ended would stay open
        lost = "is lost: the connection to its supervisor has ended"
        self._set_ended(Ending(1, lost, lost=True))

    def _hear(
        self, message: Message, payload: bytes, collection: TraceCollection | None
    ) -> None:
        if "output" in message:
            self._take(payload)
        elif "report" in message:
            self.account.take(message["report"])
            if "failed" in message["report"]:
                self._hold()
        elif "left" in message:
            self.left = [_number(each) for each in message["left"]]
        elif "traced" in message:
            if collection is not None:
                collection.take(message, payload)
        elif "error" in message:
            text = f"could not be started: {message['error']}"
            status, final = _number(message["status"]), not message.get("passes")
            missing = final and status in NOT_RUN
            self._set_ended(Ending(status, text, final=final, missing=missing))
        elif "status" in message["ended"]:
            self._set_ended(ended_with(_number(message["ended"]["status"])))
        else:
            self._set_ended(killed_by(_number(message["ended"]["signal"])))

    def _take(self, output: bytes) -> None:
        try:
            self.sink.write(output)
        except OSError as error:
            # Nobody reads what is shown, nor will what another attempt prints be read.
            self._set_ended(Ending(1, f"printed what could not be written: {error}", final=True))

    def _hold(self) -> None:
        """Leaves out what the process prints now, if it fails as it says: see `Sink.hold`."""
        self.sink.hold()
        asyncio.get_running_loop().call_later(_CHANGE_OF_MIND, self._release)

    def _release(self) -> None:
        if not self._ending:
            self._show_held()

    def _set_ended(self, ending: Ending) -> None:
        if not self.ended.done():
            self.was_stopped = self._ending
            self.ended.set_result(ending)
            if ending.status == 0:
                self._show_held()

    def _show_held(self) -> None:
        # Where standard output takes nothing more, the next line that is printed says so.
        with contextlib.suppress(OSError):
            self.sink.release()


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is no number")
    return value
