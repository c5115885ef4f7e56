"""A store's pushes: how many there were, and what servers hear of the optimizer with the next."""
from __future__ import annotations

import time
import weakref
from typing import Any, Dict, Iterable, Optional, Set

import mxnet as mx

from ..keys.key_arrays import PushDetails
from ..keys.names import Key
from ..optimizer.settings import SettingsWatch


class Pushes:
    """Counts them, and watches the optimizer that a script may change.

    Parameters
    ----------
    decides
        Whether this worker is rank 0, whose settings hold for the job where the servers update.
    """

    def __init__(self, decides: bool) -> None:
        self.step = 0  # pushes of the key that has most
        self.last = 0.0  # when there was one of any key, by time.monotonic()
        # Of the run, those included that another optimizer or an earlier job has made.
        self.steps = 0
        self._pushed: Set[Key] = set()  # in the last step
        self._begins = True  # the next push is another step's
        self._decides = decides
        self._counts: Dict[Key, int] = {}
        # The object that holds the optimizer, ServerStates or WorkerStates; a script that loads
        # states may give it another. Not kept alive: it knows the keys, and these know this.
        self._states: Optional[weakref.ref] = None
        self._on_servers = False
        self._first_update = 0  # the optimizer's, before its first step here
        # What has changed of it since the servers got it; or all of it, where workers update.
        self._watch: Optional[SettingsWatch] = None
        self._sparse_watch: Optional[SettingsWatch] = None

    def begin_on_servers(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Counts from now on, when the servers get this optimizer for all keys."""
        self.step = 0
        self._counts.clear()
        self._on_servers = True
        self._first_update = optimizer.num_update
        self._watch = SettingsWatch(optimizer)

    def begin_on_workers(self, optimizer: Optional[mx.optimizer.Optimizer]) -> None:
        """The workers update dense keys from now on, with this optimizer; None for a user's own
        function."""
        self._on_servers = False
        if optimizer is not None:
            self._watch = SettingsWatch(optimizer, sent=False)

    def begin_sparse(self, optimizer: mx.optimizer.Optimizer) -> None:
        """The servers get this optimizer for sparse keys, while workers update dense ones."""
        self._sparse_watch = SettingsWatch(optimizer)

    def begins_step(self, names: Iterable[Key]) -> bool:
        """Whether a push of one of these keys is the first of another step than the first."""
        return bool(self._pushed) and (
            self._begins or any(name in self._pushed for name in names)
        )

    def begin_step(self) -> None:
        """What is pushed next is another step's. So is a key that was pushed in this one already,
        if nobody tells: not all keys are pushed in each step."""
        self._begins = True

    def follow(self, states: Any) -> None:
        """The optimizer is the one that `states` has, now and later; the caller keeps them."""
        self._states = weakref.ref(states)

    def miss(self, name: Key, rounds: int) -> None:
        """So many rounds of a key have gone without this worker."""
        self._counts[name] = self._counts.get(name, 0) + rounds
        self._come_to(max(self.step, self._counts[name]))
        states = None if self._states is None else self._states()
        if self._on_servers and states is not None:
            states.optimizer.num_update = self._first_update + self.step

    def count(self, name: Key) -> int:
        """How often a key was pushed."""
        return self._counts.get(name, 0)

    def take_counts(self, counts: Dict[Key, int]) -> None:
        """Counts on from what another worker has counted of these keys. Not where servers update:
        `miss` has counted the rounds of all, from where this worker's own optimizer began, which is
        what rank 0 tells the servers by."""
        if self._on_servers:
            return
        self._counts.update(counts)
        self._come_to(max(self._counts.values(), default=self.step))

    def _come_to(self, step: int) -> None:
        """Others have come to this one, or to fewer, where this worker was alone with some."""
        self.steps += step - self.step
        self.step = step

    def forget(self, name: Key) -> None:
        """The key's servers are others from now on, and know nothing."""
        if self._watch is not None:
            self._watch.forget(name)

    def details(self, name: Key, priority: int) -> PushDetails:
        """Counts a dense key's push; returns what accompanies it to the servers."""
        self.count_one(name)
        return PushDetails(priority, self.step, self._news(name, self._watch))

    def details_of_trained(self, name: Key, priority: int, travels: bool) -> PushDetails:
        """The same of a key that each worker trains by itself, dividing by its own batch, and that
        travels now and then."""
        self.count_one(name)
        news = self._news(name, self._watch if travels else None, own_batch=True)
        return PushDetails(priority, self.step, news)

    def sparse_settings(self, name: Key) -> str:
        """Counts a sparse key's push; returns the settings with which its servers are to update,
        empty where they know them or hear them from another worker."""
        self.count_one(name)
        watch = self._watch if self._on_servers else self._sparse_watch
        news = self._news(name, watch, by_number=isinstance(name, str))
        return news if self._decides else ""

    def count_one(self, name: Key) -> None:
        """Counts a push of a key."""
        self.last = time.monotonic()
        if self._begins or name in self._pushed:
            self._begins = False
            self._pushed.clear()
            self.steps += 1
        self._pushed.add(name)
        self._counts[name] = self._counts.get(name, 0) + 1
        self.step = max(self.step, self._counts[name])

    def _news(
        self,
        name: Key,
        watch: Optional[SettingsWatch],
        own_batch: bool = False,
        by_number: bool = False,
    ) -> str:
        """What the key's servers have to hear of the optimizer, once its push is counted."""
        states = None if self._states is None else self._states()
        if watch is None or states is None:
            return ""
        optimizer = states.optimizer
        if self._on_servers:
            # So that trainer.learning_rate says what the servers' schedule has come to.
            optimizer.num_update = self._first_update + self.step
            if not self._decides:
                return ""
        else:
            # What the update that follows counts: a step's first key is to have the same learning
            # rate as the others, whichever it is on another worker.
            counts = optimizer._index_update_count
            own = counts.get(name, optimizer.begin_num_update) + 1
            if watch is self._sparse_watch:
                counts[name] = own  # the servers update it, and nobody else counts here
            optimizer.num_update = max(optimizer.num_update, own)
        return watch.news(optimizer, name, own_batch, by_number)
