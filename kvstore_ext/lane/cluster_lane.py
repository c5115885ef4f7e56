"""A lane in a cluster (in one process: local_lane.py)."""
from __future__ import annotations

import contextlib
import ctypes
import socket
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import mxnet as mx
from mxnet.base import _LIB, MXNetError, check_call

from .. import _core
from ..config import FOR_EVER, Job, Options
from ..descriptors import make_room
from ..errors import ClusterError, KVStoreError, OptionError
from ..keys.sparse_rows import MOST_BYTES, Servers
from ..launch_reports import report
from ..notes import say
from ..optimizer.optimizer_format import pack_optimizer
from ..protocol.commands import GREET, HEAD, SET_OPTIMIZER, SPARSE_SETTINGS, command
from ..protocol.questions import answers_to, ask
from ..protocol.scheduler_watch import SchedulerWatch
from ..security.admission import enter_job
from ..status_reports import keep_reporting, report_status
from ..stock_store import stock_store
from .bounded_calls import LAST_MOMENT, BoundedCalls, exit_when_stuck
from .lane import Lane, make_worker
from .opening_errors import incomplete, unanswered, without_lane
from .script_reads import script_reads
from .told_to_end import ToldToEnd

_LATER = 1.1  # a worker's limits, times those of servers, which know who is missing
_MULTI_PRECISION = 1  # the head of a command that MXNet's servers understand themselves


class ClusterLane(Lane):
    """A worker of a launched job, beside MXNet's own dist_sync store.

    A process has one, whatever the number of its stores: ps-lite knows processes, not stores.
    """

    in_process = False
    _current: Optional[ClusterLane] = None
    _is_parents = False  # this process is a forked child of the worker

    @classmethod
    def shared(cls, name: str, options: Options, job: Job) -> ClusterLane:
        """This process's lane, opened if it is not.

        Raises
        ------
        OptionError
            For a second store with other options.
        ClusterError
            Where the process has closed its last store, and so left the job.
        KVStoreError
            In a forked child of a worker.
        """
        current = cls._current
        if current is not None and current._is_parents:
            raise KVStoreError(
                "a forked process has no part in the job of its parent, whose threads it has not "
                "got: open stores before forking, and use them in the parent"
            )
        if current is not None and current._opened > 0 and current._stores == 0:
            raise ClusterError(
                f"worker {current.rank} has left its job, since its last store was closed: keep "
                "one open for as long as another is to be opened"
            )
        if current is None:
            current = cls._current = cls(name, options, job)
        elif current._options != options:
            raise OptionError(
                f"the stores of a process share their options; found {options}, and "
                f"{current._options} before"
            )
        return current

    def forget_stores(self) -> None:
        super().forget_stores()
        self._is_parents = True

    def __init__(self, name: str, options: Options, job: Job) -> None:
        if job.role != "worker":
            raise ClusterError(
                f"a {name} store was created by a {job.role}; only workers have stores. Start "
                "servers and the scheduler with kvstore-ext --serve"
            )
        self._options = options
        self._take_over(options)
        self._job = job
        self._stores = 0  # open
        self._steps: List[weakref.ReferenceType[Any]] = []  # stores, which count them
        self._opened = 0
        self._watched = False
        self._waits = False  # the script's thread, for all operations
        self._barriers = 0  # so far
        self._left = threading.Event()
        self._reporting: Optional[threading.Thread] = None
        self.stuck = False  # a thread of MXNet's has stayed behind
        self._bounded = BoundedCalls(options.timeout)
        report(joining=True)
        make_room(job)
        enter_job(job, options.timeout)
        self.stock = self._bounded(
            lambda: stock_store("dist_sync"), lambda: incomplete(job, options.timeout)
        )
        self._native = self.stock.handle
        self.servers = Servers(job.servers, job.big_array, flat=True, most_bytes=MOST_BYTES)
        self.rank, self.workers = _rank_and_size(self._native)
        if job.launch_rank not in (None, self.rank):
            # Its port was taken, or --env has set another: errors name the ranks of the job.
            say(
                f"this is worker {self.rank} of the job, although the launcher calls "
                f"it worker {job.launch_rank}"
            )
        transport = _core.PsLiteTransport(
            role=_core.Role.WORKER, peers=job.servers, copies=job.resending > 0
        )
        self.worker = make_worker(
            transport, name, options, self.rank, self.workers, job.servers, job.number
        )
        self._greet()
        try:
            self.worker.join()
            self._trace_if_asked(options)
        except RuntimeError as error:
            self.worker.abort(str(error))  # unless it is that
            self._let_go()
            raise ClusterError(str(error)) from None
        self._scheduler = SchedulerWatch(self.worker.scheduler(), job.scheduler, options.silence)
        threading.Thread(target=self._look, daemon=True, name="scheduler").start()
        self.told_to_end = ToldToEnd(self.worker, self.rank, job.servers, self._left)
        report(joined=True, rank=self.rank)
        self._reporting = keep_reporting(self._status, self._left)
        if self._reporting is not None:
            script_reads.watch(self.worker)

    def count_steps_of(self, store: Any) -> None:
        """Has the launcher hear how many steps the store has behind it, from now on."""
        self._steps.append(weakref.ref(store))

    def _status(self) -> Dict[str, Any]:
        known = [store for store in (each() for each in tuple(self._steps)) if store is not None]
        stores = [store for store in known if not store.closed] or known
        sent, received = self.worker.traffic()
        return {
            "steps": max((store.steps for store in stores), default=0),
            "made": max((store.steps_made for store in stores), default=0),
            "waiting": round(self.worker.totals().first, 4),
            "sent": sum(sent.values()),
            "received": sum(received.values()),
        }

    def _look(self) -> None:
        while not self._left.wait(0.5) and not self.worker.failure():
            self._scheduler.look(f"worker {self.rank}")

    def _greet(self) -> None:
        """Finds out whether the servers have a lane before anything is sent to it."""
        limit = self._options.timeout
        # Sooner than a living server says that the workers have not opened their stores.
        sooner = 0.8 * limit
        greeting = command(GREET, self.rank, socket.gethostname(), self._job.name)
        try:
            self._bounded(
                lambda: self._send(greeting, HEAD),
                lambda: unanswered(self.rank, self.worker.await_servers(0), sooner),
                self.worker.failure,
                sooner,
            )
        except ClusterError as error:
            self.worker.abort(str(error))
            self._let_go()
            raise ClusterError(self.worker.failure()) from None
        missing = self.worker.await_servers(min(10.0, limit))
        if self.worker.failure():
            self._let_go()
            raise ClusterError(self.worker.failure())
        if missing:
            # All workers find the same, so they can leave in order, which ends stock servers too.
            with contextlib.suppress(ClusterError):
                self._free(limit)
            raise ClusterError(without_lane(missing))

    def _send(self, body: str, head: int) -> None:
        check_call(_LIB.MXKVStoreSendCommmandToServers(self._native, head, body.encode()))

    def command(self, body: str, head: int = HEAD) -> None:
        """Has all servers execute a command, on the stock store's channel."""
        self.ask_servers(lambda: self._send(body, head))

    def ask_servers(self, call: Callable[[], Any]) -> Any:
        """What a call returns that waits for all servers; raises ClusterError where the job fails,
        as it does where they are dead, or after `patience`."""
        counted = self.worker.begin_stock("answered a command")
        try:
            return self._bounded(call, lambda: "", self.worker.failure, FOR_EVER)
        finally:
            self.worker.end_stock(counted)

    def open_store(self) -> int:
        """The number of one more store: how many this process has opened before."""
        self._stores += 1
        self._opened += 1
        return self._opened - 1

    def set_optimizer(
        self, store: int, optimizer: mx.optimizer.Optimizer, sparse_only: bool
    ) -> None:
        """Sends rank 0's optimizer to the servers; none updates before it has come.

        Raises
        ------
        KVStoreError
            On all workers, for an optimizer that has attributes which are no data.
        ClusterError
            On rank 0, for one that the servers refuse; the others hear of it at their next call.
        """
        try:
            packed = pack_optimizer(optimizer)
        except Exception as error:
            raise KVStoreError(
                f"optimizer {type(optimizer).__name__} cannot travel to the servers: {error}; "
                "leave that out, or update on the workers, with "
                "Trainer(..., update_on_kvstore=False) or MXNET_UPDATE_ON_KVSTORE=0 for a Module"
            ) from None
        if self.rank == 0:
            keys = "sparse" if sparse_only else "all"
            self.command(command(SET_OPTIMIZER, store, keys, packed))
            self._await_all_servers()
            if getattr(optimizer, "multi_precision", False):
                self.command("", _MULTI_PRECISION)

    def set_updater(self, updater: Callable[[int, Any, Any], None]) -> None:
        """The servers are other processes, and a function stays in its own."""
        raise NotImplementedError

    def _await_all_servers(self) -> None:
        """Returns once all servers have survived what they were told before."""
        questions = [ask(self.worker, server, "here", {}) for server in range(self.servers.count)]
        answers_to(self.worker, questions)

    def begin_sparse(self) -> None:
        """To be called before the first sparse key."""
        if not self._watched:
            self._watched = True
            exit_when_stuck(self.worker, self._left, lambda: self._waits)

    def wait_for_all(self) -> None:
        self._waits = True
        try:
            super().wait_for_all()
        finally:
            self._waits = False

    def sparse_settings(self, number: int, settings: str) -> None:
        """Has the servers update a sparse key with these settings from now on."""
        self.command(command(SPARSE_SETTINGS, number, settings))

    def call_together(self, call: Callable[[], Any], what: str) -> Any:
        """What a call of MXNet's returns that waits for all workers, through the scheduler; raises
        ClusterError where the others do not do likewise, or the scheduler is gone."""

        def failure() -> str:
            if self._scheduler.gone:
                return f"worker {self.rank} has not {what}: the scheduler {self._scheduler.gone}"
            return self.worker.failure()

        self.worker.meet(what, waits=False)
        return self._bounded(
            call,
            lambda: f"worker {self.rank} has not {what} within {self.patience:g} s",
            failure,
            _LATER * self.patience,
        )

    def barrier(self) -> None:
        """Waits for all workers; raises ClusterError after `patience`, or where the job fails.

        The lane's own: MXNet's needs the scheduler.
        """
        self._barriers += 1
        what = f"come to barrier {self._barriers}"
        latest = time.monotonic() + _LATER * self.patience
        self.worker.meet(what, waits=True)
        try:
            while not self.worker.await_meeting(what, 0.2):
                if time.monotonic() > latest:
                    self.worker.abort(
                        f"worker {self.rank}: server 0 has not answered within "
                        f"{self.patience:g} s that all workers have {what}"
                    )
        except RuntimeError as error:
            raise ClusterError(str(error)) from None

    def close(self) -> None:
        """Closes a store. The last one waits for the other workers, then ends ps-lite; after a
        failure it waits for nobody."""
        self._stores -= 1
        if self._stores > 0:
            return
        self.stop_trace(servers_too=False)
        try:
            if self.worker.failure():
                raise RuntimeError(self.worker.failure())
            self._leave()
        except RuntimeError as error:
            self._let_go()
            raise ClusterError(str(error)) from None
        report_status(self._status)  # a job of less than a second has come to something too
        sent, received = self.worker.traffic()
        report(traffic={"sent": sum(sent.values()), "received": sum(received.values())})
        self._let_go()

    def _let_go(self) -> None:
        """Ends ps-lite without its barriers, for which the scheduler and everybody else would have
        to be alive. After a farewell the others need this worker no more; and after a failure."""
        if self._job.resending:
            # ps-lite aborts a process that ends it before everything is acknowledged.
            self._left.set()
            self.worker.hush()
            self.stuck = True
            time.sleep(self._job.resending)
            return
        check_call(_LIB.MXKVStoreSetBarrierBeforeExit(self._native, 0))
        try:
            self._free(LAST_MOMENT)
        except ClusterError:
            self.stuck = True
            time.sleep(1.0)  # for the news to leave for the other processes

    def _free(self, seconds: float) -> None:
        self._left.set()
        # ps-lite must find the customer of every message that it still receives, so ours goes last.
        self.worker.hush()
        if self.told_to_end is not None:
            self.told_to_end.stop(seconds)
        if self._reporting is not None:
            self._reporting.join(seconds)

        def free() -> None:
            # What failed and was never looked at is raised here once. Otherwise the store's
            # destructor would raise it, which ends the process.
            with contextlib.suppress(MXNetError):
                mx.nd.waitall()
            check_call(_LIB.MXKVStoreFree(self._native))

        self._bounded(
            free,
            lambda: f"ps-lite has not ended within {seconds:g} s",
            seconds=seconds,
        )
        self.worker.stop()


def _rank_and_size(handle: Any) -> Tuple[int, int]:
    rank, size = ctypes.c_int(), ctypes.c_int()
    check_call(_LIB.MXKVStoreGetRank(handle, ctypes.byref(rank)))
    check_call(_LIB.MXKVStoreGetGroupSize(handle, ctypes.byref(size)))
    return rank.value, size.value
