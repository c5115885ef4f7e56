"""Optimizer states on the servers: fetched to be saved, and put back, into any number of servers.

MXNet's file holds a state a key, and so does ours; on the servers each slice of a dense key has its
part of it, as have each server's rows of a sparse one (state_answers.py).
"""
from __future__ import annotations

import copy
import math
import pickle
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np

from .. import _core
from ..copies import packed
from ..errors import KVStoreError
from ..keys.key_parts import KeyPart, Parted
from ..keys.names import Key
from ..protocol.carries import ENTRY, Carries
from ..protocol.state_format import build, flatten, with_shapes
from ..protocol.state_pieces import Fetching, Section, Sending, finish_all
from .updates_slices import updates_slices


class ServerStates:
    """What MXNet calls a store's updater, for an optimizer that runs on the servers.

    Parameters
    ----------
    optimizer
        The worker's, which a script may change.
    worker
        The lane.
    keys
        The store's keys by name, now and later.
    resend
        Sends rank 0's optimizer to the servers, which then have no states.
    carries
        What its compression carries over.
    decides
        Whether this worker is rank 0, whose states hold for the job.
    wait_for_all
        The lane's.
    """

    def __init__(
        self,
        optimizer: mx.optimizer.Optimizer,
        worker: _core.Worker,
        keys: Mapping[Key, Parted],
        resend: weakref.WeakMethod,
        carries: Carries,
        decides: bool,
        wait_for_all: Callable[[], None],
    ) -> None:
        self.optimizer = optimizer
        self._worker = worker
        self._keys = keys
        self._resend = resend
        self._carries = carries
        self._decides = decides
        self._wait_for_all = wait_for_all

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """All states, as MXNet's Updater.get_states. Any worker may ask, without the others."""
        states, counts = self._fetch_all()
        states.update(self._carries.fetch())
        if not dump_optimizer:
            return pickle.dumps(states)
        return packed(self._counted(counts), states)

    def saved(self) -> Tuple[Dict[Key, Any], bytes]:
        """The states, of which nothing changes any more, and the optimizer."""
        states, counts = self._fetch_all()
        return states, packed(self._counted(counts))

    def _fetch_all(self) -> Tuple[Dict[Any, Any], Dict[Key, int]]:
        self._wait_for_all()  # no update is under way then
        states: Dict[Any, Any] = {}
        counts: Dict[Key, int] = {}
        for name, key in self._keys.items():
            found = self._fetch(key)
            if found is not None:
                states[name], counts[name] = found
        return states, counts

    def _counted(self, counts: Dict[Key, int]) -> mx.optimizer.Optimizer:
        """A copy of the optimizer with the servers' counts. The script's own would take them along
        into a later `set_optimizer`."""
        counted = copy.copy(self.optimizer)
        own = counted._index_update_count
        together = {**own, **counts}
        counted._all_index_update_counts = {
            device: together if table is own else table
            for device, table in counted._all_index_update_counts.items()
        }
        counted._index_update_count = together
        counted.num_update = max([counted.num_update, *counts.values()])
        return counted

    def set_states(self, states: bytes) -> None:
        """Puts states back, and the optimizer if it was saved with them. Rank 0's hold for the job.

        Raises
        ------
        KVStoreError
            For states of other keys or shapes, or with an optimizer that cannot run on the servers
            or that the method refuses, before anything is sent.
        """
        loaded, optimizer = load_states(states)
        check_states(loaded, self._keys)
        if optimizer is not None and not updates_slices(optimizer):
            raise KVStoreError(
                f"the states have the optimizer {type(optimizer).__name__}, which looks at whole "
                "parameters, and servers update slices: load them into a store whose workers "
                f"update, with {type(optimizer).__name__} or update_on_kvstore=False"
            )
        if optimizer is not None:
            self._carries.check_optimizer(optimizer)
        self._carries.put_back(loaded)
        if optimizer is not None:
            self.optimizer = optimizer  # with its counts
        self.resume(loaded)

    def resume(self, loaded: Dict[Key, Any]) -> None:
        """Goes on from states of the store's keys, and from where the optimizer is. Rank 0's hold
        for the job."""
        self._wait_for_all()
        self._carries.adopt(self.optimizer)  # before the servers get it
        resend = self._resend()
        assert resend is not None, "the store is gone"
        resend(self.optimizer)
        if not self._decides:
            return
        # A file without the optimizer has no counts; updates then count on from the optimizer's.
        counts = self.optimizer._index_update_count
        try:
            for name, state in loaded.items():
                count = int(counts.get(name, self.optimizer.num_update))  # NumPy's are no json
                self._put(self._keys[name], state, count)
        except KVStoreError as error:
            self._worker.abort(f"states were put back on some servers only: {error}")
            raise

    def take(self, name: Key) -> Optional[Tuple[Any, int]]:
        """A key's state, and how often it was updated, before it gets another policy; None where
        there is no state yet."""
        return self._fetch(self._keys[name])

    def give(self, name: Key, state: Any, count: int) -> None:
        """Has the key go on from there with the policy that it has now."""
        self._put(self._keys[name], state, count)

    def _fetch(self, key: Parted) -> Optional[Tuple[Any, int]]:
        parts = key.parts()
        asked = [
            Fetching(self._worker, part.server, f"{part.kind} state", {"place": part.place})
            for part in parts
        ]
        answers = finish_all(asked)
        found = [arrived for _, arrived in answers if arrived is not None]
        # Not by their counts: a state that was loaded without its optimizer may have 0.
        if len(found) < len(answers):
            return None
        count = min(answer["count"] for answer, _ in answers)
        # One array after the other, so that no more than one of them is there in parts and whole.
        arrays = [
            _joined([arrived.arrays.pop(0) for arrived in found], parts, key.shape)
            for _ in range(len(found[0].arrays))
        ]
        return build(found[0].outline, arrays), count

    def _put(self, key: Parted, state: Any, count: int) -> None:
        outline, arrays = flatten(state)
        asked = []
        for part in key.parts():
            name, what = f"{part.kind} state", {"place": part.place, "count": count}
            cut = [array.shape == key.shape for array in arrays]  # others are the same everywhere
            own = [Section(a, part.begin if is_cut else 0) for a, is_cut in zip(arrays, cut)]
            shapes = (part.shape if is_cut else a.shape for a, is_cut in zip(arrays, cut))
            of_part = with_shapes(outline, shapes)
            asked.append(Sending(self._worker, part.server, name, what, of_part, own))
        finish_all(asked)


def load_states(data: bytes) -> Tuple[Dict[Key, Any], Optional[mx.optimizer.Optimizer]]:
    """What MXNet's Updater.get_states wrote: states by key, and the optimizer if it is there.

    Raises KVStoreError for anything else.
    """
    try:
        states, optimizer = pickle.loads(data), None
    except Exception as error:
        raise KVStoreError(f"these are no optimizer states: {error}") from None
    if isinstance(states, tuple) and len(states) == 2:
        states, optimizer = states
    if not isinstance(states, dict):
        raise KVStoreError(f"these are no optimizer states, but a {type(states).__name__}")
    return states, optimizer


def check_states(states: Dict[Key, Any], keys: Mapping[Key, Any], whole: bool = False) -> None:
    """Raises KVStoreError for states of other keys or shapes than these. An optimizer that updates
    whole parameters may have arrays of some of their dimensions, as GroupAdaGrad has of rows and
    Shampoo of rows by rows, and what no server could save."""
    for name, state in states.items():
        if name == ENTRY:
            continue
        if name not in keys:
            raise KVStoreError(
                f"the states are another model's: they have key {name!r}; this store has "
                f"{', '.join(map(repr, keys)) or 'none'}"
            )
        shape = keys[name].shape
        for array in _arrays_of(state, whole):
            is_part = whole and all(size in (1, *shape) for size in array.shape)
            if array.shape != shape and math.prod(array.shape) != 1 and not is_part:
                raise KVStoreError(
                    f"the states are another model's: that of key {name!r} has shape "
                    f"{array.shape}; the key has shape {shape}"
                )


def _arrays_of(state: Any, whole: bool) -> List[Any]:
    try:
        return flatten(state)[1]
    except KVStoreError:
        if not whole:
            raise
        return []


def _joined(
    found: Sequence[np.ndarray], parts: Sequence[KeyPart], shape: Tuple[int, ...]
) -> np.ndarray:
    """The array that was cut into these parts; one that was not is the same everywhere."""
    if all(array.shape == part.shape for array, part in zip(found, parts)):
        return (np.concatenate(found) if len(found) > 1 else found[0]).reshape(shape)
    return found[0]
