"""Workers of kvstore_ext.ec_dnn.

Every worker is a thread that runs the same Trainer as in a job. One runs at a time, from one call
of its store to the next, in the order of ranks: so the result does not depend on the machine, and a
worker's time is what its thread has computed (MXNET_ENGINE_TYPE=NaiveEngine computes everything in
the thread that asks for it).
"""
from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional

import mxnet as mx
import numpy as np


class _Ended(Exception):  # noqa: N818 - not an error of the thread that it ends
    """Another worker has failed."""


class _Job:
    """What the stores of a simulated job share."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.error: Optional[BaseException] = None
        self._turns = [threading.Semaphore(0) for _ in range(workers)]
        self._deposits: Dict[int, Dict[int, Any]] = {}  # by call, then by rank

    def begin(self) -> None:
        self._turns[0].release()

    def await_turn(self, rank: int) -> None:
        self._turns[rank].acquire()
        if self.error is not None:
            raise _Ended

    def pass_on(self, rank: int) -> None:
        self._turns[(rank + 1) % self.workers].release()

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error
        for turn in self._turns:
            turn.release()

    def exchange(self, call: int, rank: int, value: Any) -> List[Any]:
        """What all workers have given to their call of this number, by rank."""
        given = self._deposits.setdefault(call, {})
        given[rank] = value
        self.pass_on(rank)
        self.await_turn(rank)  # once all others have come to the same call
        if rank == self.workers - 1:
            del self._deposits[call]
        return [given[other] for other in range(self.workers)]


class SimulatedStore:
    """What ec_dnn asks of a store."""

    type = "simulated"

    def __init__(self, job: _Job, rank: int) -> None:
        self.rank, self.num_workers = rank, job.workers
        self.received = 0  # bytes of arrays
        self._job, self._calls = job, 0

    def init(self, key: Any, value: mx.nd.NDArray) -> None:
        """All keys begin with zeros, which nobody reads."""

    def include_in_snapshots(self, part: Any) -> None:
        """There are none."""

    def parts_in_snapshots(self) -> Dict[str, Any]:
        """None either."""
        return {}

    def broadcast_from(
        self, root: int, key: Any, value: mx.nd.NDArray, priority: int = 0
    ) -> None:
        """As P3Worker's."""
        given = self._exchange((root, value.asnumpy() if root == self.rank else None))
        assert {other for other, _ in given} == {root}, "workers disagree about the root"
        if root != self.rank:
            self._write(given[root][1], value)

    def pushpull(
        self,
        key: Any,
        value: mx.nd.NDArray,
        out: Optional[mx.nd.NDArray] = None,
        priority: int = 0,
    ) -> None:
        """As P3Worker's."""
        first, *others = self._exchange(value.asnumpy())
        total = first.copy()
        for other in others:
            total += other
        self._write(total, value if out is None else out)

    def fail(self, reason: str) -> None:
        """As P3Worker's."""
        raise RuntimeError(reason)

    def _exchange(self, value: Any) -> List[Any]:
        self._calls += 1
        return self._job.exchange(self._calls, self.rank, value)

    def _write(self, value: np.ndarray, out: mx.nd.NDArray) -> None:
        if self.num_workers > 1:
            self.received += value.nbytes
        out[:] = mx.nd.array(value, dtype=value.dtype)


def run(workers: int, work: Callable[[SimulatedStore], Any]) -> List[Any]:
    """What work(store) returns on each worker, by rank; raises what it raises on the first."""
    job = _Job(workers)
    results: List[Any] = [None] * workers

    def be_worker(rank: int) -> None:
        try:
            job.await_turn(rank)
            results[rank] = work(SimulatedStore(job, rank))
            job.pass_on(rank)
        except _Ended:
            pass
        except BaseException as error:
            job.fail(error)

    threads = [
        threading.Thread(target=be_worker, args=(rank,), name=f"worker {rank}")
        for rank in range(workers)
    ]
    for thread in threads:
        thread.start()
    job.begin()
    for thread in threads:
        thread.join()
    if job.error is not None:
        raise job.error
    return results
