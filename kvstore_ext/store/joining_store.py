"""A worker that has run out of batches: it takes part with nothing until all have (store.join)."""
from __future__ import annotations

import contextlib
from typing import Callable, Iterator, List, Optional, Set

import mxnet as mx

from ..config import Options
from ..errors import ClusterError, of_job
from ..notes import warn_script
from ..optimizer.replica import Followed
from .catching_up import Replicas, hand_over
from .method_store import MethodStore
from .shutdown import open_stores

# Seconds after which a script that waits here can be interrupted from the keyboard.
_MOMENT = 0.5


class JoiningStore(MethodStore):
    """A store whose workers may have different numbers of batches."""

    joins_at_close = False  # for scripts that do not call `join`: mxnet_hooks/joining.py

    def __init__(self, options: Optional[Options] = None) -> None:
        super().__init__(options)
        # Of who updates parameters on this worker beside the store: None once it is gone.
        self._replicas: List[Callable[[], Optional[Followed]]] = [self._router.replica]
        self._blocks = 0  # of `joined` that the script is in
        self._joined_push = 0.0  # the last one before a join, as pushed_last

    def join(self, mean: bool = False) -> int:
        """Has the others go on without this worker, until all workers have called it.

        From now on the rounds of all the process's stores count this worker as come, with zeros;
        nothing is sent to it. It waits here as long as others train. When the last one has come,
        all return, and whoever has missed rounds has the same as the others again: parameters that
        the servers update are pulled to where the script last had them, by a pull or as a first
        value; those that every worker updates, by the store, a Trainer or a Module, are taken over
        with the optimizer's states and counts from a worker that has missed none. What compression
        has left out stays for the next round of this worker's own; with slim_dp its model becomes
        the global one.

        A script that updates parameters itself, after pulling sums, takes them over itself:

            whole = store.join()
            store.broadcast_from(whole, names, parameters)

        Every worker calls it as often. Keys' first values, `broadcast_from`, `barrier` and `close`
        wait for all workers, so they come before or after. Until rank 0 takes part again, an
        optimizer on the servers keeps the settings that rank 0 has sent last.

        Parameters
        ----------
        mean
            Sums of some workers count as those of all, times the number of workers over that of
            those who push: gradients of equal batches then keep their mean. Not those of keys with
            row-sparse arrays, which MXNet's servers add up: a warning says so. The same everywhere.

        Returns
        -------
        int
            The rank of a worker that has missed no round, the first of them: the same everywhere.

        Raises
        ------
        ClusterError
            Where the job fails meanwhile: a worker leaves without having come here, say.
        KVStoreError
            With slim_dp, within `global_parameters`.
        """
        self._check_open()
        stores = self._stores_of_process()
        for store in stores:
            store._router.method.check_join()
        sparse = [key.name for store in stores for key in store._router.sparse.keys.values()]
        if mean and sparse and self.num_workers > 1:
            warn_script(
                "join(mean=True) does not reach keys with row-sparse arrays, such as "
                f"{sparse[0]!r}: where some workers have no batches left, these are updated by the "
                "sum of the others' gradients"
            )
        self._lane.wait_for_all()
        before = [store._router.rounds() for store in stores]
        try:
            self._worker.begin_idle(mean)
            for store in stores:
                store._router.method.begin_idle()
            missed = self._await_others(stores)
        except RuntimeError as error:
            raise error if isinstance(error, ClusterError) else ClusterError(str(error)) from None
        whole = min(set(range(self.num_workers)) - missed)  # who came last has missed none
        for store, begun in zip(stores, before):
            after = store._router.rounds()
            store._router.miss({name: after[name] - rounds for name, rounds in begun.items()})
        replicas: Replicas = {
            store._router.number: [found() for found in store._replicas] for store in stores
        }
        routers = {store._router.number: store._router for store in stores}
        hand_over(self._lane, replicas, routers, whole, missed)
        if self.rank in missed:
            with of_job(self._worker.failure):
                for store in stores:
                    store._router.refresh()
                    store._router.method.catch_up()
        for store in stores:
            store._joined_push = store._router.pushed_last
        return whole

    @contextlib.contextmanager
    def joined(self, mean: bool = False) -> Iterator[None]:
        """Calls `join` after the block, which may have different numbers of steps on the workers.

            with store.joined():
                for inputs, labels in loader:
                    ...
                    trainer.step(batch_size)

        Where the block raises, nothing is waited for.
        """
        self._blocks += 1
        try:
            yield
        finally:
            self._blocks -= 1
        self.join(mean)

    @contextlib.contextmanager
    def global_parameters(self) -> Iterator[None]:
        try:
            with super().global_parameters():
                self._note_changed()
                yield
        finally:
            self._note_changed()

    def _note_changed(self) -> None:
        """Parameters are others now, as Modules hear that are asked for what is to be alike."""
        for find in self._replicas:
            find()

    def replicate(self, replica: Callable[[], Optional[Followed]]) -> None:
        """Has `join` hand over what this function returns as well, parameters that each worker
        updates beside the store, or numbers that it counts: the same on all workers. It is asked at
        each `join`."""
        self._replicas.append(replica)

    def close(self) -> None:
        is_open = not self.closed and not self._worker.failure()
        if self.joins_at_close and is_open and self._ends_pushes():
            with contextlib.suppress(mx.MXNetError):  # which closing tells, or the script
                self.join()
        super().close()

    @staticmethod
    def last_push_of_process() -> float:
        """When an open store was pushed last, by time.monotonic(); 0 before any was."""
        times = (store._router.pushed_last for store in open_stores if not store.closed)
        return max(times, default=0.0)

    @staticmethod
    def join_of_process() -> None:
        """Calls `join` of one of the open stores, which joins all; there is one."""
        next(store for store in open_stores if not store.closed).join()

    def _ends_pushes(self) -> bool:
        """Whether the process's last pushes were to this store, and it has not joined since. The
        garbage collector may close others at any time, while the script trains with this one."""
        is_last = self._router.pushed_last >= self.last_push_of_process()
        return is_last and self._pushes_since_join

    @property
    def _may_be_uneven(self) -> bool:
        """Whether the script is in a block of `joined`, at the end of which others may be."""
        return any(store._blocks > 0 for store in self._stores_of_process())

    @property
    def _is_in_epoch(self) -> bool:
        """Whether a store of the process was pushed to since it has joined."""
        return any(store._pushes_since_join for store in self._stores_of_process())

    @property
    def _pushes_since_join(self) -> bool:
        return self._router.pushed_last > self._joined_push

    def _stores_of_process(self) -> List[JoiningStore]:
        mine = [store for store in open_stores if not store.closed and store._lane is self._lane]
        return sorted(mine, key=lambda store: store._router.number)

    def _await_others(self, stores: List[JoiningStore]) -> Set[int]:
        """Who has missed rounds, once all workers have come."""
        while True:
            number = self._worker.await_demand(_MOMENT)
            if number is not None:
                # None where no process of the job has asked.
                owner = next((one for one in stores if number in one._router.sparse.keys), None)
                if owner is not None:
                    owner._router.sparse.keys[number].push_nothing()
                continue
            missed = self._worker.end_idle()
            if missed is not None:
                return missed
