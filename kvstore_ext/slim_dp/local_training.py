"""Slim-DP at a worker: it trains a model of its own, and exchanges parts of it with the servers.

Sun et al., AAAI 2018, algorithm 1. csrc/slim_dp/slim_key.h takes out what travels and merges what
comes back, csrc/slim_dp/slim_slice.h is the server's side, core_selection.py chooses the core.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Mapping, Optional

import mxnet as mx

from .. import _core
from ..compression.store_context import StoreContext
from ..errors import ArrayMismatch, KVStoreError
from ..keys.key_arrays import KeyArrays, PushDetails, total_of
from ..keys.names import Key, storage, stype_of
from .core_selection import CoreSelector

if TYPE_CHECKING:
    from .options import SlimDP


class LocalTraining:
    """The keys of a store that are trained on each worker. Only the script's thread calls it.

    Parameters
    ----------
    context
        The store; its keys are in the order of the model.
    method
        Slim-DP with its options.
    """

    def __init__(self, context: StoreContext, method: SlimDP) -> None:
        self.method = method
        self.updater: Optional[Callable[[Key, mx.nd.NDArray, mx.nd.NDArray], None]] = None
        self.arrays: Dict[Key, List[mx.nd.NDArray]] = {}  # the script's, one a device
        self.steps: Dict[Key, int] = {}
        self.chosen = -1  # the last selection that was begun
        self.model = _core.SlimModel(method.specification(()), context.rank)
        self._decides = context.rank == 0
        self._context = context
        self._keys = context.keys
        self._core = 0  # parameters; 0 before the first round
        self._sized = False
        # The worker's own parameters while the script's arrays show the global ones.
        self._put_aside: Optional[Dict[Key, mx.nd.NDArray]] = None
        self._local: Dict[Key, KeyArrays] = {}
        self.selector = CoreSelector(context.worker, context.store, method)

    @property
    def keys(self) -> Dict[Key, KeyArrays]:
        """Those that are trained locally, in the order of the model."""
        if not self._sized:
            self._local = self._context.keys_of_method()
        return self._local

    @property
    def rounds(self) -> int:
        """Rounds that all keys have begun, those of earlier runs included."""
        return min((self.steps.get(name, 0) for name in self.keys), default=0) // self.method.p

    def check_new(self, name: Key) -> None:
        """Raises KVStoreError for a key that comes after the first round: the core is chosen over
        the whole model."""
        if self._sized:
            raise KVStoreError(
                f"key {name!r} is initialised after the first round; with slim_dp all keys must be "
                "initialised before, because the core is chosen among all of them"
            )

    def check_step(
        self, name: Key, gradients: List[mx.nd.NDArray], outs: Optional[List[mx.nd.NDArray]]
    ) -> None:
        """Raises KVStoreError where a step lacks an optimizer, or parameters to update, or comes
        within global_parameters(), or without another key that is needed first; and ArrayMismatch
        for gradients that are not dense."""
        if stype_of(gradients[0]) != "default":
            raise ArrayMismatch(
                f"key {name!r}: got a {storage(gradients[0].stype)} gradient of a dense weight; "
                "slim_dp takes dense ones: name the key in its option exclude"
            )
        self.check_shows_own(f"key {name!r} is pushed")
        if self.updater is None:
            raise KVStoreError(
                f"key {name!r}: slim_dp updates parameters on the worker and has no optimizer; "
                "call set_optimizer first, or leave out Trainer(..., update_on_kvstore=False)"
            )
        if outs is None:
            raise KVStoreError(
                f"key {name!r} is pushed alone; slim_dp trains the parameters that the script has: "
                "use pushpull(key, gradients, out=parameters)"
            )
        if self.communicates(name) and self.method.selects:
            self._check_others((self.steps.get(name, 0) + 1) // self.method.p)

    def _check_others(self, round_: int) -> None:
        """Raises KVStoreError for a key without the rounds after which the core is chosen that this
        round begins with: servers would wait for it."""
        rounds = round_ - 1 - self.method.core_delay
        if rounds <= 0 or rounds % self.method.q != 0:
            return  # it begins with an earlier round's, and others could come meanwhile
        for name in self.keys:
            steps = self.steps.get(name, 0)
            if steps // self.method.p < rounds:
                raise KVStoreError(
                    f"key {name!r} has been pushed {steps} times, others {rounds * self.method.p} "
                    "times and more; slim_dp chooses the core among all keys after the same rounds "
                    "of each: push it in every step, or leave it out from the start by exclude"
                )

    def has_own_model(self, name: Key) -> bool:
        """Whether the script's arrays have this worker's own parameters of a key by now."""
        return self._put_aside is None and self.steps.get(name, 0) > 0

    def own(self) -> Dict[Key, mx.nd.NDArray]:
        """This worker's own parameters, whatever the script's arrays show."""
        return self._put_aside or {name: arrays[0] for name, arrays in self.arrays.items()}

    def check_shows_own(self, what: str) -> None:
        """Raises KVStoreError where the script's arrays show the global parameters."""
        if self._put_aside is not None:
            raise KVStoreError(f"slim_dp: {what} within global_parameters(); leave that before")

    def communicates(self, name: Key) -> bool:
        """Whether the key's next step ends with a round."""
        return (self.steps.get(name, 0) + 1) % self.method.p == 0

    def step(
        self,
        name: Key,
        gradients: List[mx.nd.NDArray],
        parameters: List[mx.nd.NDArray],
        details: PushDetails,
    ) -> None:
        """Updates a key's parameters, one array a device, by the sum of the devices' gradients, and
        exchanges them every `p` steps; returns at once."""
        assert self.updater is not None
        if not self._sized:
            self._set_sizes()
        local = parameters[0]
        self.arrays[name] = parameters
        self.updater(name, total_of(gradients).as_in_context(local.context), local)
        communicates = self.communicates(name)
        self.steps[name] = self.steps.get(name, 0) + 1
        if communicates:
            round_ = self.steps[name] // self.method.p
            # The core that a round begins with must have been chosen, whoever is not pushed.
            self._select((round_ - 1) // self.method.q)
            self._keys[name].pushpull([local], [local], details)
            if round_ % self.method.q == 0 and self.rounds == round_:
                self._select(round_ // self.method.q)  # as soon as all keys are on their way
        for other in parameters[1:]:
            local.copyto(other)

    def begin_idle(self) -> None:
        """Rounds go on without this worker (store.join), which may not have pushed yet."""
        if self._decides and self.method.selects and self.keys:
            if not self._sized:
                self._set_sizes()  # or the others' first round would wait for a core
            keys = [key.identity for key in self.keys.values()]
            self.selector.begin_idle(self.chosen, self._core, keys)

    def end_idle(self, missed: Mapping[Key, int]) -> None:
        """It takes part again, as far as it has missed rounds; `follow` does the rest."""
        if not self._sized:
            return
        for name in self.keys:
            self.steps[name] = self.steps.get(name, 0) + missed.get(name, 0) * self.method.p
        self.chosen = max(self.chosen, self.rounds // self.method.q)
        if self._decides and self.method.selects:
            self.chosen = self.selector.end_idle()

    def progress(self) -> Dict[str, int]:
        """Steps of each key, by its name as Python writes it."""
        return {repr(name): self.steps.get(name, 0) for name in self.keys}

    def follow(self, progress: Mapping[str, int]) -> None:
        """Is as many steps from the next round as the worker whose progress this is. That has made
        the same rounds, and more or fewer steps since the last one."""
        if not any(progress.values()):  # before the first step there is nothing to go on from
            return
        if not self._sized:
            self._set_sizes()
        self.steps.update((name, progress[repr(name)]) for name in self.keys)
        # What rank 0 has begun meanwhile.
        self.chosen = max(self.chosen, self.rounds // self.method.q)

    def _set_sizes(self) -> None:
        parameters = sum(key.elements for key in self.keys.values())
        self._core, together = self.method.sizes(parameters)
        self.model.set_sizes(self._core, together)
        self._sized = True
        self._select(0)  # at once: states that are saved before the first round have it

    def _select(self, selection: int) -> None:
        # Of a key that others leave behind servers have no round to choose by: it would be waited
        # for. Where it comes, its own push begins the selection.
        if self.chosen >= selection or self.rounds < selection * self.method.q:
            return
        self.chosen = selection
        if self._decides and self.method.selects:
            keys = [key.identity for key in self.keys.values()]
            self.selector.begin(selection, self._core, keys)

    @contextlib.contextmanager
    def global_parameters(self) -> Iterator[None]:
        """Has the script's arrays hold the global parameters meanwhile."""
        if self._put_aside is not None:
            yield
            return
        saved: Dict[Key, mx.nd.NDArray] = {}
        for name, arrays in self.arrays.items():
            saved[name] = arrays[0].copy()
            self._keys[name].pull(arrays, 0)
        self._put_aside = saved
        try:
            yield
        finally:
            self._put_aside = None
            for name, value in saved.items():
                for array in self.arrays[name]:
                    value.copyto(array)
