"""A store's keys, and how far each has come: what workers compare, and take over of each other."""
from __future__ import annotations

from typing import Any, Dict, Iterable, Optional

from ..compression.store_context import StoreContext
from ..compression.store_method import StoreMethod
from ..keys.key_arrays import KeyArrays
from ..keys.key_policy import KeyPolicy, Values
from ..keys.names import Key
from ..lane.lane import Lane
from ..optimizer.replica import Item, Replica
from ..optimizer.worker_states import WorkerStates
from .kept_arrays import KeptArrays
from .pushes import Pushes
from .summed_key import UpdatedOnWorkers


class StoreKeys:
    """The keys of a store on a lane, which KeyRouter begins, pushes and pulls."""

    def __init__(self, lane: Lane) -> None:
        self.number = lane.open_store()
        self.keys: Dict[Key, KeyArrays] = {}  # dense
        self.policies: Dict[Key, KeyPolicy] = {}  # of all, in the order of their first values
        self._lane = lane
        self._pushes = Pushes(decides=lane.rank == 0)
        self._context = StoreContext(
            worker=lane.worker,
            store=self.number,
            rank=lane.rank,
            workers=lane.workers,
            patience=lane.patience,
            barrier=lane.barrier,
            wait_for_all=lane.wait_for_all,
            keys=self.keys,
            non_finite=lane.non_finite,
            push_details=self._pushes.details_of_trained,
        )
        self.method = StoreMethod(self._context)
        self._kept = KeptArrays()
        self._worker_states: Optional[WorkerStates] = None  # of an optimizer on the workers

    @property
    def steps(self) -> int:
        """How many have pushed any key, in earlier jobs too."""
        return self._pushes.steps

    @steps.setter
    def steps(self, steps: int) -> None:
        self._pushes.steps = steps

    def begin_step(self) -> None:
        """What is pushed next is another step's."""
        self._pushes.begin_step()

    def begins_step(self, names: Iterable[Key]) -> bool:
        """Whether a push of one of these keys is the first of another step than the first."""
        return self._pushes.begins_step(names)

    def parameters(self) -> Dict[Key, Values]:
        """Where the script has those that were trained, as far as it has had them written."""
        return {name: arrays for name, arrays in self._kept.items() if self.is_trained(name)}

    def is_trained(self, name: Key) -> bool:
        """Whether a key has more than its first value. Running averages, say, which each worker has
        of its own, have not. Of sparse keys it is not known whether others push them."""
        return name not in self.keys or self._kept.is_trained(name)

    def parameter_names(self) -> Dict[Key, str]:
        """By key, as far as a Trainer or Module has told."""
        return self._context.adopted.names

    @property
    def pushed_last(self) -> float:
        """When one was pushed last, by time.monotonic(); 0 before any was."""
        return self._pushes.last

    def rounds(self) -> Dict[Key, int]:
        """How many rounds each dense key has begun."""
        return {name: self._lane.worker.rounds(key.identity) for name, key in self.keys.items()}

    def miss(self, missed: Dict[Key, int]) -> None:
        """So many rounds of each dense key have gone without this worker."""
        for name, rounds in missed.items():
            self._pushes.miss(name, rounds)
            if rounds:
                self._kept.miss(name)
        self.method.end_idle(missed)

    def progress(self) -> Any:
        """What this worker counts of its steps, for json."""
        # Workers may have begun their keys in different orders.
        pushes = {repr(name): self._pushes.count(name) for name in self.keys}
        return {"steps": self.steps, "pushes": pushes, "method": self.method.progress()}

    def follow(self, progress: Any) -> None:
        """Counts as the worker does whose progress this is."""
        pushes = progress["pushes"]
        own = [name for name in self.keys if repr(name) in pushes]
        self._pushes.take_counts({name: pushes[repr(name)] for name in own})
        self._pushes.steps = progress["steps"]
        self.method.follow(progress["method"])

    def replica(self) -> Optional[Replica]:
        """What this worker updates as all others do, if it does, and what else its optimizer
        counts."""
        states = self._worker_states
        if states is None:
            return None
        counted = frozenset(name for name in self.keys if self.method.trains(name))
        items = [
            Item(repr(policy.name), [policy.value], [(states, policy.name)])
            for policy in self.policies.values()
            if isinstance(policy, UpdatedOnWorkers)
        ]
        return Replica(states.optimizer, items, counted)

    def refresh(self) -> None:
        """Writes the newest values where the script has them."""
        for name, arrays in self.parameters().items():
            self.policies[name].pull(arrays, 0)
