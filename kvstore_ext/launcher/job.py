"""A job from its start until none of its processes is left."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import replace
from typing import Any, Coroutine, Protocol, TypeVar

from .blame import can_be_spared
from .direct import END_LIMIT
from .environment import TRACE, with_addresses
from .failure import NO_STORE, JobError, ended, explained, no_store_was_opened
from .job_key import key_variable
from .log import CLOSE_LIMIT
from .options import Options
from .output import LogError, Sink, rename
from .processes import Ending, Process
from .protocol import TELL
from .ranks import Endpoint, local_rank, ranked
from .running import Running, StartError
from .standing import Standing
from .terminal import Terminal
from .trace_files import TraceCollection

T = TypeVar("T")

_EARLY = 5.0


class Starter(Protocol):
    """A way to get a supervisor beside each process."""

    async def open(self) -> Running | None: ...

    async def start(
        self, number: int, process: Process, sink: Sink, limit: float
    ) -> Running: ...

    async def close(self) -> None: ...


class Job:
    """One run of a list of processes. Make it inside the event loop."""

    def __init__(
        self,
        options: Options,
        processes: list[Process],
        starter: Starter,
        terminal: Terminal,
    ) -> None:
        self._options = options
        self._processes = processes
        self._starter = starter
        self._note = terminal.screen.note
        self._sinks = [Sink(process.name, options.log_dir, terminal) for process in processes]
        self._running: list[Running] = []
        say = _say_nothing if options.quiet else self._note
        self._standing = Standing(
            processes, self._running, say, options.wait_notice, options.own_servers
        )
        self._beside: list[asyncio.Future[None]] = []  # what goes on until the end
        self._inquiry: asyncio.Future[None] | None = None
        self._telling: asyncio.Future[None] | None = None
        self._collection: TraceCollection | None = None
        self._ordered = False  # whether the processes run
        self._over = False
        self._failed: asyncio.Future[JobError] = asyncio.get_running_loop().create_future()

    @property
    def running(self) -> list[Running]:
        """Its processes, which grow while it starts."""
        return self._running

    async def run(self) -> None:
        """Returns when all workers have ended with status 0; raises JobError otherwise.

        Either way no process of the job is left.
        """
        self._beside.append(asyncio.ensure_future(self._standing.remind()))
        try:
            spawner = await self._unless_failed(self._starter.open())
            if spawner:
                spawner.ended.add_done_callback(lambda end: self._spawner_ended(spawner, end))
            await self._unless_failed(self._start())
            await self._unless_failed(self._give_orders())
            self._ordered = True
            self._beside.append(asyncio.ensure_future(self._standing.announce()))
            await self._unless_failed(asyncio.wait(self._endings("worker")))
            others = self._endings("server", "scheduler")
            await self._unless_failed(asyncio.wait(others, timeout=self._options.grace))
            self._look_at_what_stays()
        finally:
            self._over = True
            await self._end()
        self._standing.conclude()

    def fail(self, failure: JobError) -> None:
        """Ends the job with this failure, unless it is ending already."""
        if not self._failed.done() and not self._over:
            self._failed.set_result(failure)

    def tell(self, failure: JobError) -> None:
        """Has workers end by themselves, with a snapshot if they take any, then ends the job with
        this failure; at once before they run."""
        if not self._ordered:
            self.fail(failure)
        elif not self._telling:
            self._telling = asyncio.ensure_future(self._tell(failure))
            self._beside.append(self._telling)

    async def _tell(self, failure: JobError) -> None:
        for running in self._running:
            if running.process.role == "worker":
                running.link.give(TELL)
        await asyncio.wait(self._endings("worker"), timeout=self._options.notice)
        text, sink = ended(self._running)
        self.fail(JobError(f"{failure}{text}", failure.status, sink, final=True))

    async def _unless_failed(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns what `work` returns; raises the first failure as soon as there is one."""
        task = asyncio.ensure_future(work)
        either: list[asyncio.Future[Any]] = [task, self._failed]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            inquiry = self._inquiry
            if inquiry:
                either = [inquiry, self._failed]
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                raise self._failed.result()
            if inquiry:
                inquiry.result()  # raises what has kept it from finding anything
            return task.result()
        except StartError as error:
            raise JobError(
                str(error), error.status, error.sink,
                final=error.final, missing=error.missing, host=error.host,
            ) from None  # fmt: skip
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _start(self) -> None:
        starts = [
            asyncio.ensure_future(self._start_one(number, process))
            for number, process in enumerate(self._processes)
        ]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
        self._running.sort(key=lambda running: self._processes.index(running.process))

    async def _start_one(self, number: int, process: Process) -> None:
        limit = self._options.start_timeout
        sink = self._sinks[number]
        try:
            running = await self._starter.start(number, process, sink, limit)
        except asyncio.TimeoutError:
            title = f"{process.name} on {process.where}"
            text = f"{title} did not start within {limit:g} s"
            # mpirun and srun start all processes or none, and do not say whose host is to blame.
            gone = process.host if self._options.launcher == "ssh" else None
            raise JobError(text, 1, sink, host=gone) from None
        running.ended.add_done_callback(lambda ended: self._process_ended(running, ended))
        self._running.append(running)

    async def _give_orders(self) -> None:
        """Finds addresses and ranks, then has every supervisor run its process."""
        *others, scheduler = self._running
        job = secrets.token_hex(8)  # no other's, an earlier attempt's neither
        address = self._options.environment.get("DMLC_PS_ROOT_URI")
        one_host = self._options.launcher == "local" and self._options.interface is None
        if one_host and address is None:
            address = "127.0.0.1"
        at = await self._reserve(scheduler, address, None, self._options.port)
        same = at.address if one_host else None
        endpoints = await asyncio.gather(
            *(self._reserve(each, same, at.address) for each in others)
        )
        own = {**dict(zip(others, endpoints)), scheduler: at}
        beside = {scheduler: 0}  # which process of its host each is
        for role in ("worker", "server"):
            members = [each for each in others if each.process.role == role]
            of_role = [own[each] for each in members]
            for running, (rank, endpoint) in zip(members, ranked(of_role)):
                running.process = replace(running.process, rank=rank)
                own[running], beside[running] = endpoint, local_rank(endpoint, of_role)
        rename({each.sink: each.process.name for each in others})
        options = self._options
        if TRACE in options.environment:
            self._collection = TraceCollection(options.environment[TRACE], self._note)
        key = key_variable(options.launcher, options.job_key) if options.secure else {}
        for running in self._running:
            process = running.process
            assert process.rank is not None
            environment = with_addresses(
                process.environment, process.rank, beside[running], job, at, own[running]
            )
            running.run(
                {**environment, **key}, collection=self._collection, notice=options.notice
            )

    async def _reserve(
        self, running: Running, address: str | None, towards: str | None, port: int = 0
    ) -> Endpoint:
        return await running.reserve(
            self._options.start_timeout,
            self._running.index(running),
            len(self._running),
            interface=self._options.interface,
            towards=towards,
            address=address,
            port=port,
        )

    def _endings(self, *roles: str) -> list[asyncio.Future[Ending]]:
        return [running.ended for running in self._running if running.process.role in roles]

    def _look_at_what_stays(self) -> None:
        """Fails where servers and scheduler still wait for workers that have all ended."""
        staying = [running for running in self._running if not running.ended.done()]
        if staying and no_store_was_opened(self._running, self._options.own_servers):
            raise JobError(NO_STORE, 1, final=True)
        for running in staying:
            after = f"{self._options.grace:g} s after the last worker"
            self._note(f"{running.title} is still there {after} and will be ended")

    def _process_ended(self, running: Running, ended: asyncio.Future[Ending]) -> None:
        ending = ended.result()
        if can_be_spared(running, self._running, self._options.own_servers):
            self._spare(running)
        elif ending.status != 0:
            if not self._inquiry and not self._telling and not self._over:
                self._inquiry = asyncio.ensure_future(self._inquire(running))
        elif running.process.role != "worker":
            # At the end of a job all processes end at about the same time, in any order.
            loop = asyncio.get_running_loop()
            loop.call_later(_EARLY, self._note_early, running)

    def _note_early(self, running: Running) -> None:
        workers = [each for each in self._running if each.process.role == "worker"]
        left = [each.process.name for each in workers if not each.ended.done()]
        if left and not self._over:
            still = ", ".join(left)
            self._note(f"{running.title} has ended with exit status 0; {still} still runs")

    def _spawner_ended(self, spawner: Running, ended: asyncio.Future[Ending]) -> None:
        if ended.result().status != 0:
            self._blame(spawner, ended.result())
        elif len(self._running) < len(self._processes):
            missing = len(self._processes) - len(self._running)
            text = f"{spawner.title} has ended, but {missing} of its processes never reported"
            self.fail(JobError(text, 1, spawner.sink))

    async def _inquire(self, first: Running) -> None:
        """Ends the job with the failure of who is to blame, once `first` has failed."""
        own_servers = self._options.own_servers
        # A process that the job was spared has failed, but is not why another process has.
        others = [
            each
            for each in self._running
            if not each.ended.done() or not can_be_spared(each, self._running, own_servers)
        ]
        failure = await explained(first, others, own_servers)
        if can_be_spared(first, self._running, own_servers):  # since workers have ended meanwhile
            self._inquiry = None
            self._spare(first)
        else:
            self.fail(failure)

    def _spare(self, running: Running) -> None:
        goes_on = "all workers have ended well"
        if running.process.role == "scheduler":
            goes_on = "the job goes on without it"
        if not self._over:
            self._note(f"{running.title} {running.ended.result().text}; {goes_on}")

    def _blame(self, running: Running, ending: Ending) -> None:
        self.fail(JobError(f"{running.title} {ending.text}", ending.status, running.sink))

    async def _end(self) -> None:
        """Ends all processes; returns when they are gone, or have not answered for too long."""
        for task in (*self._beside, *([self._inquiry] if self._inquiry else [])):
            task.cancel()
        for running in self._running:
            running.end()
        if self._running:
            await self._wait_for_the_last()
        for running in self._running:
            if not running.gone.done():
                self._note(f"{running.title} has not confirmed its end within {END_LIMIT:g} s")
                running.gone.cancel()
            if running.left:
                numbers = ", ".join(map(str, running.left))
                self._note(
                    f"{running.title} has left processes that SIGKILL has not ended yet, as in a "
                    f"call of the kernel that waits for a disk: {numbers}"
                )
        if self._collection:
            self._collection.close()
        try:
            await self._starter.close()
        except LogError as error:
            self._note(str(error))
        latest = time.monotonic() + CLOSE_LIMIT
        for sink in self._sinks:
            try:
                sink.close(latest)
            except LogError as error:
                self._note(str(error))

    async def _wait_for_the_last(self) -> None:
        """Returns when all processes are gone, or nothing has come from those left for too long."""
        left = {running.gone for running in self._running}
        while left:
            before = self._pieces()
            _, left = await asyncio.wait(left, timeout=END_LIMIT)
            if self._pieces() == before:
                return

    def _pieces(self) -> int:
        """Returns how many pieces of trace files have come so far."""
        return self._collection.taken if self._collection else 0


def _say_nothing(text: str) -> None:
    """For --quiet."""
