"""A store's part in its job: how it opens its lane, waits for the others, fails and closes."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from typing import Optional

import mxnet as mx
from mxnet.base import _LIB, MXNetError, check_call
from mxnet.kvstore import KVStore

from ..config import Job, Options, refuse_other_p3
from ..errors import ClusterError, KVStoreError
from ..lane.cluster_lane import ClusterLane
from ..lane.lane import Lane
from ..lane.local_lane import LocalLane
from ..launch_reports import report
from ..notes import say
from ..protocol.end_signal import was_told
from ..trace.steps import Steps
from .shutdown import close_alone, failures, get_over_failures, left_behind, take_care_of


@functools.lru_cache(maxsize=None)  # once a process
def _note_alone() -> None:
    say(
        "no launcher has started this process (DMLC_ROLE is not set), so its stores "
        "have one worker, which trains alone"
    )


class LaneStore(KVStore):
    """A store on the lane: that of its cluster, or of the process outside a launched job.

    Those that derive from it call `_begin` once they are made. The last reference closes it.
    """

    closed = True  # until it is made
    _failure = ""  # that it had when it was closed

    def __init__(self, options: Options) -> None:
        refuse_other_p3()
        job = Job.from_environment()
        if job is None:
            get_over_failures()
        try:
            self._lane: Lane = (
                LocalLane("p3", options) if job is None else ClusterLane.shared("p3", options, job)
            )
        except ClusterError as error:
            failures.append(error)
            report(failed=str(error))
            raise
        if job is None:
            _note_alone()
        super().__init__(self._lane.stock.handle)
        self._options = options
        self._worker = self._lane.worker

    def _begin(self) -> None:
        mx.profiler.set_kvstore_handle(self.handle)  # as mx.kv.create does for MXNet's own
        self.closed = False
        self._lane.count_steps_of(self)
        take_care_of(self)

    def __del__(self) -> None:
        if self.closed:
            return
        with contextlib.suppress(Exception):  # of an interpreter half gone
            if threading.current_thread().daemon:
                # Closing waits for the lane's own threads, of which this may be one.
                # And an interpreter that is wound down waits for one that is no daemon.
                threading.Thread(
                    target=close_alone, args=[self], name="close store", daemon=False
                ).start()
            else:
                close_alone(self)

    @property
    def rank(self) -> int:
        """This worker's rank, from 0."""
        return self._lane.rank

    @property
    def num_workers(self) -> int:
        """How many workers the job has."""
        return self._lane.workers

    def barrier(self) -> None:
        """Waits until all workers have come here; raises ClusterError after `patience`."""
        self._check_open()
        self._lane.barrier()

    def _barrier(self) -> None:
        self.barrier()

    def _send_command_to_servers(self, head: int, body: str) -> None:
        """Has the servers' controller execute a command; raises ClusterError after `patience`."""
        self._check_open()
        self._lane.ask_servers(
            lambda: KVStore._send_command_to_servers(self._lane.stock, head, body)
        )

    def get_num_dead_node(self, node_id: int, timeout: int = 60) -> int:
        """How many processes were silent for so many seconds, by the scheduler's heartbeats.

        node_id adds up what is counted: 1 the scheduler, 2 servers, 4 workers.
        """
        if self.closed:
            raise KVStoreError("the store is closed")
        dead = ctypes.c_int()
        check_call(_LIB.MXKVStoreGetNumDeadNode(self.handle, node_id, ctypes.byref(dead), timeout))
        return dead.value

    def close(self) -> None:
        """Waits for all operations. Idempotent, and called at exit by itself.

        A process's last store waits for the other workers to close too, and raises ClusterError
        where the job failed.
        """
        if self.closed:
            return
        self.closed = True
        self._failure = self._worker.failure()
        told = self._lane.told_to_end
        try:
            with told.held_back() if told is not None else contextlib.nullcontext():
                self._finish()
                if not self._failure:
                    with contextlib.suppress(MXNetError):  # of a computation: the script's to tell
                        self._lane.wait_for_all()
                self._lane.close()
        except KVStoreError as error:
            # Here, not at exit, where a store that is closed has nothing more to say.
            report(failed=str(error))
            if was_told():
                failures.append(error)  # the process is to end by that status, whatever follows
            raise
        except KeyboardInterrupt:
            # Nobody closes this store again, so that the others would wait for it.
            self.fail("was interrupted while it closed its store")
            raise
        finally:
            if self._lane.stuck:
                left_behind.append(self._lane)

    def _finish(self) -> None:
        """Waits for what goes on beside the operations; called once, by `close`."""

    def start_trace(self, directory: str, steps: Optional[str] = None) -> None:
        """Records what happens to every slice from now on, here and on the servers.

        All workers call it; rank 0 has the servers record. Each process writes into its own host's
        directory; `kvstore-ext trace` and `kvstore_ext.trace.reading.read` make something of it.

        Parameters
        ----------
        directory
            Where the files go, on the servers' hosts too; it is made.
        steps
            Such as "50:60" for the steps 50 to 59 of this process; all unless given.

        Raises
        ------
        KVStoreError
            For malformed steps, where a trace is under way, or files cannot be written.
        """
        self._check_open()
        try:
            wanted = Steps.parse(steps)
        except ValueError as error:
            raise KVStoreError(f"start_trace: steps: {error}") from None
        self._lane.start_trace(os.path.abspath(directory), wanted, self._options)

    def stop_trace(self) -> None:
        """Waits for this worker's operations, and ends what start_trace began; closing the store
        does so too."""
        self._check_open()
        self._lane.wait_for_all()
        self._lane.stop_trace()

    def fail(self, reason: str) -> None:
        """Ends the job on all processes, with this reason."""
        self._worker.abort(f"worker {self.rank}: {reason}")

    def _check_open(self) -> None:
        failure = self._failure if self.closed else self._worker.failure()
        if failure:
            raise ClusterError(failure)
        if self.closed:
            raise KVStoreError("the store is closed")
