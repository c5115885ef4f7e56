"""What a store's method gets to know of the store, and of its optimizers."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Set

import mxnet as mx

from .. import _core
from ..keys.key_arrays import KeyArrays, PushDetails
from ..keys.names import Key


@dataclass
class Adopted:
    """What a store has learned of the optimizers with which parameters are updated."""

    names: Dict[Key, str] = field(default_factory=dict)  # the parameters', by key
    untrained: Set[Key] = field(default_factory=set)  # keys of parameters without gradients
    momentum: float = 0.0  # that the method applies in the optimizer's stead
    # Of the network's last layer; None where nobody has told, and nothing where it is not known.
    last_layer: Optional[List[Key]] = None
    any: bool = False  # whether there has been an optimizer

    def learn(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Learns which parameters there are."""
        self.any = True
        self.names.update(optimizer.idx2name)
        for index, parameter in optimizer.param_dict.items():
            self.names[index] = parameter.name
            if parameter.grad_req == "null":
                self.untrained.add(index)


@dataclass(frozen=True)
class StoreContext:
    """What a method knows of its store.

    worker, store
        The lane, and the store's number on it.
    rank, workers, patience, barrier, wait_for_all
        The lane's.
    keys
        The store's dense keys by name, now and later, in the order of their first values.
    non_finite
        The store's option of that name, of keys that travel uncompressed.
    push_details
        Counts a push of a key with this priority, and tells what accompanies it, if it travels.
    """

    worker: _core.Worker
    store: int
    rank: int
    workers: int
    patience: float
    barrier: Callable[[], None]
    wait_for_all: Callable[[], None]
    keys: Mapping[Key, KeyArrays]
    non_finite: _core.NonFinite
    push_details: Callable[[Key, int, bool], PushDetails]
    adopted: Adopted = field(default_factory=Adopted)

    def keys_of_method(self) -> Dict[Key, KeyArrays]:
        """Those of the dense keys that were declared with the method's codec."""
        return {name: key for name, key in self.keys.items() if key.compressed}
