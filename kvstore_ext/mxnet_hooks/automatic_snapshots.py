"""Snapshots of scripts that know nothing of them: kvstore-ext --snapshot DIR train.py."""
from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any, Callable, Optional

import mxnet as mx

from ..errors import KVStoreError
from ..notes import say
from ..snapshots.random_states import RandomStates
from ..store.p3_worker import P3Worker
from ..store.shutdown import open_stores

Step = Callable[..., None]


class AutomaticSnapshots:
    """Takes snapshots after steps of Trainers and Modules, and goes on from them.

    A script that is started again begins at its first batch. Until it is where the snapshot was
    taken its steps do nothing: nothing is sent, and the network stays as it is. Then the run goes
    on, with the data, the epochs and the schedules that the script has come to.

    The store that makes the first step has the snapshots, after steps of its own. They hold the
    runs of further stores too, as of a script that trains two networks against each other. Once it
    is closed the next store to make a step takes its place.

    Parameters
    ----------
    directory
        That of a process's first store; one that takes its place has its own in there. It stays
        the same when the script changes into another.
    every
        Steps from one to the next.
    """

    def __init__(self, directory: str, every: int) -> None:
        self._directory = Path(directory).absolute()
        self._every = every
        self._first: Callable[[], Optional[P3Worker]] = lambda: None
        self._others: Any = weakref.WeakSet()
        # Steps of the first store made in an earlier job, all of which the script is to repeat.
        self._to_repeat = 0
        # How many each Trainer has, and each optimizer of Modules, which those of a BucketingModule
        # share. Several may have one store, whose steps are those of the one that has made most.
        self._made: Any = weakref.WeakKeyDictionary()
        self._in_two: Any = weakref.WeakSet()  # those that have called allreduce_grads last
        self._begun = 0  # steps that the first store had when it became that
        self._drawn = 0  # the repeated step after which random numbers were set last
        self._seen = False  # whether there was a step
        self._seen_elsewhere = False  # one without a store of kvstore_ext

    def begin(self) -> None:
        """Has them taken in this process from now on."""
        trainer, module = mx.gluon.Trainer, mx.mod.Module
        trainer.step = self._after_steps(trainer.step, _store_of_trainer)
        trainer.update = self._after_steps(trainer.update, _store_of_trainer, second=True)
        trainer.allreduce_grads = self._not_repeated(trainer.allreduce_grads)
        module.update = self._after_steps(module.update, lambda module: module._kvstore)
        store: Any = P3Worker
        store.close = self._missing_at_close(store.close)

    def conclude(self) -> None:
        """Says so where a script has trained, and none of its steps was one of these, or where it
        has ended before it had come to the snapshot again."""
        for store in list(open_stores):
            if not store.closed:
                self._miss(store)
        first = self._first()
        if self._to_repeat and first is not None and first.rank == 0:
            say(
                f"the script has ended after {max(self._made.values(), default=0)} of the "
                f"{self._to_repeat} steps that it was to repeat, and has trained nothing: what "
                "ends it, a score say, was not the same again; such a script calls store.snapshot "
                "and store.restore by itself"
            )
        if self._seen_elsewhere and not self._seen:
            say(
                f"no snapshot is in {self._directory}: the script has trained without a store of "
                "kvstore_ext, whose runs these are; have it ask for one, as mx.kv.create('p3')"
            )

    def _miss(self, store: Any) -> None:
        if self._seen or store.rank != 0 or store.steps_made == 0 or store.snapshot_step > 0:
            return
        self._seen = True  # and said
        say(
            f"no snapshot is in {self._directory}: the script has made {store.steps_made} steps, "
            "and none by Trainer or Module; have it call store.snapshot"
        )

    def _missing_at_close(self, close: Callable[[Any], None]) -> Callable[[Any], None]:
        def note_and_close(store: Any) -> None:
            if not store.closed:
                self._miss(store)
            close(store)

        return note_and_close

    def _after_steps(
        self, step: Step, store_of: Callable[[Any], Any], second: bool = False
    ) -> Step:
        """With `second` it is what ends a step that `allreduce_grads` has begun, and counted."""

        def step_and_snapshot(owner: Any, *arguments: Any, **named: Any) -> None:
            store = store_of(owner)
            if not isinstance(store, P3Worker):
                self._seen_elsewhere = True
                step(owner, *arguments, **named)
                return
            self._meet(store)
            is_first = store is self._first()
            if self._to_repeat == 0:
                step(owner, *arguments, **named)
                if is_first:
                    self._count_step(owner, second)
                    self._check_count(store)
                    if store._may_be_uneven:
                        raise KVStoreError(
                            "--snapshot takes one after each step, and within store.joined() "
                            "nobody can, as workers that have run out of batches take no part; "
                            "have the script call store.snapshot after the block instead"
                        )
                    store.snapshot(self._directory_of(store), self._every)
                return
            _use_up_gradients(owner)
            if is_first:
                self._count_step(owner, second)
                self._repeat(store)

        return step_and_snapshot

    def _count_step(self, owner: Any, second: bool) -> None:
        if not second or owner not in self._in_two:
            self._count(owner)
        self._in_two.discard(owner)

    def _count(self, owner: Any) -> None:
        # A Trainer that loads states has another optimizer afterwards.
        by = owner if isinstance(owner, mx.gluon.Trainer) else owner._optimizer
        self._made[by] = self._made.get(by, self._begun) + 1

    def _check_count(self, store: P3Worker) -> None:
        """Steps that the script is to repeat are those of Trainers and Modules: where the store
        has counted others, what a snapshot says would be another moment."""
        made = max(self._made.values())
        if made != store.steps:
            raise KVStoreError(
                "--snapshot goes on by repeating steps of a Trainer or Module, of which the script "
                f"has made {made}, and its store has counted {store.steps}: it pushes other keys "
                "in between, or trains several in turns; have it call store.snapshot and "
                "store.restore"
            )

    def _repeat(self, store: P3Worker) -> None:
        """Comes nearer to the snapshot, and goes on from it in the end: forward passes have changed
        running averages meanwhile, and further stores have come."""
        repeated = max(self._made.values(), default=0)
        if repeated >= self._to_repeat:
            self._to_repeat = 0
            store.repeats = False
            store.restore(self._directory_of(store))
        elif repeated % self._every == 0 and repeated != self._drawn:
            self._drawn = repeated
            # As a snapshot did here, after which random numbers were others: what the script
            # draws, such as the order of an epoch, is to be the same again.
            RandomStates().own(store.rank)

    def _not_repeated(self, reduce: Step) -> Step:
        """What a Trainer does before its `update`, and is no step itself."""

        def reduce_unless_repeated(trainer: Any) -> None:
            store = _store_of_trainer(trainer)
            if not isinstance(store, P3Worker):
                reduce(trainer)
                return
            self._meet(store)
            if self._to_repeat == 0:
                reduce(trainer)
            if store is self._first():
                self._in_two.add(trainer)  # also where no update follows, of an overflow say
                self._count(trainer)

        return reduce_unless_repeated

    def _meet(self, store: P3Worker) -> None:
        """Has the snapshots hold the run of a store that is about to make a step."""
        self._seen = True
        first = self._first()
        if first is None or first.closed:
            self._first = weakref.ref(store)
            self._begun = store.steps
            # A script that goes on from a snapshot by itself repeats nothing. What the last first
            # one's snapshots held of this store's run has put it back, too.
            by_itself = store not in self._others and store.steps > store.steps_made
            self._to_repeat = 0 if by_itself else self._restored(store)
            store.repeats = self._to_repeat > 0
            self._others.clear()
            self._made.clear()
            self._drawn = 0
        elif store is not first and store not in self._others:
            self._others.add(store)
            first.include_run_of(store)
            if self._to_repeat:
                first.restore(self._directory_of(first), early=True)  # with the run of this one

    def _restored(self, store: P3Worker) -> int:
        directory = self._directory_of(store)
        step = store.restore(directory, early=True)
        if step is not None and store.rank == 0:
            say(
                f"goes on from step {step}, of a snapshot in {directory}; until the "
                "script has come there it trains nothing"
            )
        return step or 0

    def _directory_of(self, store: P3Worker) -> Path:
        return self._directory / f"store-{store.number}" if store.number else self._directory


def _use_up_gradients(owner: Any) -> None:
    """As the step that is not made would, where the Trainer updates by itself: a later one with
    ignore_stale_grad goes by that."""
    if isinstance(owner, mx.gluon.Trainer) and not owner._update_on_kvstore:
        for parameter in owner._params:
            if parameter.grad_req != "null":
                for array in parameter._data or ():
                    array._fresh_grad = False


def _store_of_trainer(trainer: mx.gluon.Trainer) -> Any:
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    return trainer._kvstore
