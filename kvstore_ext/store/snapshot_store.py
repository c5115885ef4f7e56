"""How a script has its run written beside training, and goes on from there."""
from __future__ import annotations

import functools
import os
from typing import Callable, Dict, List, Optional

import mxnet as mx

from ..config import Options
from ..errors import ClusterError, KVStoreError
from ..notes import say
from ..snapshots import Part, Snapshots
from ..snapshots.snapshots import PathLike
from .broadcasts import Broadcasts
from .joining_store import JoiningStore
from .other_run import OtherRun
from .store_run import StoreRun


class SnapshotStore(JoiningStore):
    """A store whose run can be interrupted."""

    repeats = False  # whether the script comes to a snapshot again, by steps that do nothing

    def __init__(self, options: Optional[Options] = None) -> None:
        super().__init__(options)
        self._broadcasts = Broadcasts(self._lane, self._router.number)
        self._snapshots = Snapshots(
            self._lane.rank,
            self._lane.workers,
            self._lane.timeout,
            functools.partial(_of_rank_0, self._broadcasts, self._worker.failure),
            self._worker.failure,
        )
        self._restored = 0  # steps of an earlier job
        run = StoreRun(self._router, self._lane, self._snapshots.at_hand)
        self._snapshots.include(run)

    @property
    def number(self) -> int:
        """How many stores this process opened before it."""
        return self._lane.opened_before + self._router.number

    @property
    def steps(self) -> int:
        """How many the run has behind it, in earlier jobs too."""
        return self._snapshots.steps

    def begin_step(self) -> None:
        """Has what is pushed from now on count as another step.

        Trainer calls it. A script that pushes by itself need not: a step begins with a key that the
        last one has pushed, too. Where no two steps in a row have a key in common, it may.
        """
        self._router.begin_step()

    @property
    def steps_made(self) -> int:
        """How many of these this job has made."""
        return self.steps - self._restored

    @property
    def snapshot_step(self) -> int:
        """The step after which the last snapshot was taken, or gone on from; 0 without one."""
        return self._snapshots.taken

    def go_on_from(self, step: int) -> None:
        """Counts steps from an earlier job's on; `restore` calls it."""
        self._router.steps = self._restored = step

    def snapshot(self, directory: PathLike, every: int = 100, keep: int = 2) -> bool:
        """Has the run written to a directory, if that many steps have been; to be called by all
        workers after each step, or at least after the same ones.

        A snapshot has the keys' values, the optimizer's states, on servers or workers, what
        compression and Slim-DP carry over, what a Trainer or Module of the store trains, and the
        states of MXNet's, NumPy's and Python's random generators. The script waits while that is
        copied, and for the last snapshot where that is not written yet. A job that is killed at any
        time leaves whole snapshots behind. Once a process of the job is told to end, by SIGTERM,
        all workers take a last one after the same step, and end their scripts by SystemExit(143).

        Parameters
        ----------
        directory
            Of this store's run alone, on a file system that all hosts share; it need not exist.
        every
            Steps from one to the next; a step is a push of every key, with EC-DNN a mini-batch.
        keep
            How many whole ones stay, beside newer ones than that from which the run went on; older
            ones are removed.

        Returns
        -------
        bool
            Whether one was begun.

        Raises
        ------
        KVStoreError
            Where the last one could not be written: its reason. For numbers below 1. For keys with
            row-sparse arrays, unless they are of float32 or float64 and servers update them. In a
            block of `joined`, and with `kvstore-ext --join` between an epoch's steps, where others
            may have come to its end.
        """
        self._check_open()
        if self._may_be_uneven:
            raise KVStoreError(
                "snapshot is called within store.joined(), where workers that have run out of "
                "batches take no part; call it after the block"
            )
        if self.joins_at_close and self.num_workers > 1 and self._is_in_epoch:
            raise KVStoreError(
                "snapshot is called between steps of a script that was started with --join, where "
                "workers that have run out of batches take no part; call it after each epoch, or "
                "have the script call store.join itself"
            )
        told = self._lane.told_to_end
        if told is None:
            return self._snapshots.take(directory, every, keep)
        snapshots = self._snapshots  # the store's last reference closes it
        place = os.path.abspath(directory)
        told.offer(snapshots, place, self.steps, lambda: snapshots.take_now(place, keep))
        if told.comes_to_end():
            told.end(self.steps, directory)
        self._check_open()
        return self._snapshots.take(directory, every, keep)

    def restore(self, directory: PathLike, early: bool = False) -> Optional[int]:
        """Goes on from the newest snapshot in a directory that is whole; to be called by all
        workers before the first step. Servers may be another number than before, and so may
        workers, where the method allows it.

        Keys must have their first values, and the optimizer must be set, but for those of a
        Trainer, which is made before.

        Parameters
        ----------
        directory
            The one of `snapshot`.
        early
            For a first look, before another call: what the script has not made yet, such as a
            further store's run, is left out, and random generators stay as they are.

        Returns
        -------
        int or None
            The step after which it was taken, so many as the run has behind it; None where there
            is no snapshot.

        Raises
        ------
        KVStoreError
            Where there are snapshots, but all are damaged or another run's: what is wrong with
            each. Where an older one is taken, standard error has the same of the newer ones.
        """
        self._check_open()
        step = self._snapshots.restore(directory, early)
        if step is not None:
            self.go_on_from(step)
        return step

    def include_in_snapshots(self, part: Part) -> None:
        """Has snapshots hold something of the script's too.

        Parameters
        ----------
        part
            Of a class that is derived from kvstore_ext.snapshots.Part, with a name of its own.

        Raises
        ------
        KVStoreError
            For a part without a name, or with one that another part has.
        """
        self._snapshots.include(part)

    def parts_in_snapshots(self) -> Dict[str, Part]:
        """What snapshots hold now, by name."""
        return self._snapshots.parts

    def include_run_of(self, other: SnapshotStore) -> None:
        """Has snapshots of this store hold another one's run too, with the parts of that, so that
        both are of one moment. Only this store's `snapshot` and `restore` are called then.

        Parameters
        ----------
        other
            A store of the same process, open for as long as its run matters.

        Raises
        ------
        KVStoreError
            For this store itself, and one whose snapshots hold this one's run.
        """
        run = OtherRun(other)
        if run.holds(self):
            raise KVStoreError(
                f"snapshots of store {self.number} cannot hold the run of {run.name}, "
                f"of which the run of store {self.number} is a part"
            )
        self._snapshots.include(run)

    def close(self) -> None:
        if self.closed:
            return
        failure = None
        try:
            self._snapshots.join()
        except KVStoreError as error:
            failure = error
        try:
            super().close()
        except KVStoreError:
            if failure is not None:
                say(str(failure))
            raise
        finally:
            # Not before: a worker that waits for the others to leave ends in order.
            if self._lane.told_to_end is not None:
                self._lane.told_to_end.forget(self._snapshots)
        if failure is not None:
            raise failure


def _of_rank_0(
    broadcasts: Broadcasts, job_failure: Callable[[], str], numbers: List[float]
) -> List[float]:
    """Rank 0's numbers, on every worker."""
    array = mx.nd.array(numbers, dtype="float64")
    try:
        broadcasts.begin(0, [(f"kvstore_ext: {len(numbers)} numbers", [array])], 0)
        return [float(number) for number in array.asnumpy()]
    except mx.MXNetError as error:
        raise ClusterError(job_failure() or str(error)) from None
