"""Parameters that every worker updates by itself, and so all alike: one that has missed rounds
takes those of another over, with what the optimizer remembers and has counted."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Tuple, Union

import mxnet as mx

from ..copies import copied, count_on, update_counts
from .settings import plain_number

# What an optimizer counts besides numbers that say how it updates; and its worker's own batch.
_NOT_ITS_NUMBERS = frozenset({"num_update", "begin_num_update", "aggregate_num", "rescale_grad"})

States = List[Tuple[mx.optimizer.Updater, Any]]  # each an updater, and an index there


class Item(NamedTuple):
    """One parameter.

    Attributes
    ----------
    name
        The same on all workers, and no other's in the replica.
    arrays
        Its value, one array a device.
    states
        Where its optimizer's state is, for each of them.
    """

    name: str
    arrays: List[mx.nd.NDArray]
    states: States

    def state(self) -> Any:
        """The value and the optimizer's state, of the first device: all have the same."""
        updater, index = self.states[0]
        return [self.arrays[0], updater.states.get(index), index in updater.states]

    def take(self, state: Any) -> None:
        """Goes on from what another worker's `state` returned."""
        value, remembered, known = state
        for array in self.arrays:
            value.copyto(array)
        for updater, index in self.states:
            updater.states.pop(index, None)
            if known:
                updater.states[index] = copied(remembered)
                updater.states_synced[index] = False  # not on the parameter's device yet


class Replica(NamedTuple):
    """Parameters with the optimizer that updates them.

    Attributes
    ----------
    optimizer, items
        Both.
    counted
        The optimizer's indices of parameters that it updates otherwise on every worker, as often.
    """

    optimizer: mx.optimizer.Optimizer
    items: List[Item]
    counted: FrozenSet[Any] = frozenset()

    def progress(self) -> Any:
        """What the optimizer has counted of these parameters, and its numbers, for json."""
        optimizer = self.optimizer
        indices = self.counted | {index for item in self.items for _, index in item.states}
        counts = [
            [index, count]
            for index, count in update_counts(optimizer).items()
            if index in indices
        ]
        return [int(optimizer.num_update), counts, _numbers(optimizer)]

    def follow(self, progress: Any) -> None:
        """Goes on from what another worker's `progress` returned."""
        optimizer = self.optimizer
        updates, counts, numbers = progress
        followed = dict(counts)
        # Each worker may have a GPU of its own, of another number.
        devices = {array.context.device_id for item in self.items for array in item.arrays}
        count_on(optimizer, followed, devices)
        others = [
            count
            for index, count in update_counts(optimizer).items()
            if index not in followed
        ]
        optimizer.num_update = max([updates, *others])
        vars(optimizer).update(numbers)


class Counted(NamedTuple):
    """Numbers that count on alike on all workers, which nothing is updated by.

    Attributes
    ----------
    numbers
        By name; they change as the worker counts on.
    items
        None, as a replica has them.
    """

    numbers: Dict[str, Any]
    items: Tuple[Item, ...] = ()

    def progress(self) -> Any:
        """The numbers, for json."""
        return dict(self.numbers)

    def follow(self, progress: Any) -> None:
        """Goes on from what another worker's `progress` returned."""
        self.numbers.update(progress)


Followed = Union[Replica, Counted]


def _numbers(optimizer: mx.optimizer.Optimizer) -> Dict[str, Any]:
    """Those among its attributes: its rates, and what some multiply up from update to update."""
    found = {
        name: plain_number(value)
        for name, value in vars(optimizer).items()
        if name not in _NOT_ITS_NUMBERS
    }
    return {name: value for name, value in found.items() if isinstance(value, (int, float))}
