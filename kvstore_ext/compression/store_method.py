"""What a store's method decides: its compression, or how it trains, or nothing without one."""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ContextManager, Dict, Iterable, List, Optional, Tuple

import mxnet as mx
import numpy as np

from .. import _core
from ..errors import ArrayMismatch
from ..keys.key_arrays import KeyArrays
from ..keys.key_policy import KeyPolicy
from ..keys.names import Key, storage, stype_of
from ..notes import warn_script
from ..protocol.carries import StatesEntry
from .carry_over import CarryOver
from .store_context import StoreContext

if TYPE_CHECKING:
    from . import Compression


class StoreMethod:
    """A store's method: which keys it is about, and what becomes of them. It is also what the store
    adds to saved states (protocol/carries.py).

    Parameters
    ----------
    context
        The store.
    compression
        The method's options; None for a store without a method.
    """

    trains_on_workers = False  # whether each worker has a model and an optimizer of its own
    gradient_divisor = 1  # what sums are divided by before an optimizer on the workers sees them

    def __init__(self, context: StoreContext, compression: Optional[Compression] = None) -> None:
        self.compression = compression
        self.codecs: Dict[Key, Any] = {}  # the core's, of the keys that are compressed
        self._context = context
        self._carries: StatesEntry = CarryOver(context, repr(compression), self.codecs)

    @property
    def updates_on_servers(self) -> bool:
        """Whether an optimizer may run there."""
        return self.compression is None or not self.compression.updates_on_workers

    @property
    def prefers_workers(self) -> bool:
        """Whether an optimizer had better run on the workers."""
        return self.compression is not None and self.compression.prefers_workers

    @property
    def carries_over(self) -> bool:
        """Whether something of a round's gradient is left for later ones."""
        return self.compression is not None and self.compression.carries_over

    @property
    def store_type(self) -> Optional[str]:
        """The `type` of every store that has the method; None where it has none of its own."""
        return None if self.compression is None else self.compression.store_type

    def excludes(self, name: Key) -> bool:
        """Whether a key is none of the method's."""
        known = self._context.adopted.names.get(name)
        return self.compression is not None and self.compression.excludes(name, known)

    def warn_of_exclude(self, names: Iterable[Key]) -> None:
        """Warns where the option exclude has what names none of the store's keys."""
        if self.compression is None:
            return
        adopted = self._context.adopted
        in_vain = self.compression.excluded_in_vain(
            (name, adopted.names.get(name)) for name in names
        )
        if in_vain:
            unknown = not adopted.names and any(isinstance(element, str) for element in in_vain)
            why = "; parameters' names are not known, which adopt_optimizer tells"
            warn_script(
                f"{self.compression.name}: exclude has {in_vain}, of which there is no key in the "
                f"store{why if unknown else ''}"
            )

    def compression_of(self, name: Key) -> Optional[Compression]:
        """How a key is declared to the lane; None for uncompressed."""
        return None if self.excludes(name) else self.compression

    def check_new(self, name: Key, value: mx.nd.NDArray) -> None:
        """Raises ArrayMismatch for a first value that the method cannot take, and KVStoreError for
        a key that comes too late."""
        self.check(name, value)

    def check(self, name: Key, array: mx.nd.NDArray) -> None:
        """Raises ArrayMismatch for a gradient that the method cannot take."""
        compression = self.compression_of(name)
        if compression is None:
            return
        stype = stype_of(array)
        if stype != "default" and compression.sparse_travels_plain:
            return
        if stype != "default" or array.dtype not in compression.dtypes:
            types = " or ".join(np.dtype(kind).name for kind in compression.dtypes)
            momentum = ": the method applies its momentum, although it is in exclude"
            raise ArrayMismatch(
                f"key {name!r}: got a {storage(stype)} array of {np.dtype(array.dtype).name}; "
                f"with compression {compression.name} it must be dense, of {types}"
                + (momentum if self.excludes(name) else "")
            )

    def declare(self, key: KeyArrays) -> None:
        """Makes a key known to the lane."""
        compression, store = self.compression_of(key.name), self._context.store
        parameter = self._context.adopted.names.get(key.name, "")
        if compression is None:
            plain = _core.PlainCodec(non_finite=self.non_finite_of_plain)
            return key.declare(store, plain, parameter=parameter)
        codec = self.codecs[key.name] = self.codec(compression, key)
        return key.declare(store, codec, str(compression), parameter)

    @property
    def non_finite_of_plain(self) -> _core.NonFinite:
        """What becomes of values that are not finite, of keys that are none of the method's."""
        return self._context.non_finite

    def codec(self, compression: Compression, key: KeyArrays) -> _core.KeyCodec:
        """A new codec for a key that is compressed."""
        raise NotImplementedError

    def policy(self, key: KeyArrays) -> Optional[KeyPolicy]:
        """The policy of a key that the method trains itself; None for the others."""
        return None

    def progress(self) -> Any:
        """What a worker counts of the steps that it makes between two rounds, for json. When all
        have joined, those of one worker count for all."""
        return None

    def follow(self, progress: Any) -> None:
        """Counts as the worker does whose progress this is."""

    def trains(self, name: Key) -> bool:
        """Whether it trains a key itself, so that each worker has a value of its own."""
        return False

    def plain(self, name: Key) -> bool:
        """Whether a key's next push travels uncompressed."""
        return self.excludes(name)

    def excluded(self) -> List[Key]:
        """The dense keys that travel uncompressed, although the store has a method."""
        return [name for name in self._context.keys if self.excludes(name)]

    @property
    def skips(self) -> bool:
        """Whether a key's round does not count where a gradient has values that are not finite."""
        ends_job = self.compression is None or self.compression.non_finite_ends_job
        return not ends_job or self._context.non_finite == _core.NonFinite.SKIP

    def skipped(self, names: Iterable[Key]) -> bool:
        """Whether the last round of one of these keys did not count, on all workers alike. Its
        result is to have come."""
        keys, worker = self._context.keys, self._context.worker
        return any(worker.was_skipped(keys[name].identity) for name in names if name in keys)

    def learn_last_layer(self, keys: List[Key]) -> None:
        """Hears of the network's last layer; of no keys where it is not known."""
        self._context.adopted.last_layer = keys

    def check_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Raises KVStoreError for one that the method cannot do with; changes nothing."""

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Hears of the optimizer with which parameters are updated, wherever it runs.

        Raises
        ------
        KVStoreError
            For one that the method cannot do with.
        """
        self._context.adopted.learn(optimizer)

    def compressed_keys(self) -> List[Key]:
        """The keys that were declared with the method's codec."""
        return list(self._context.keys_of_method())

    def fetch(self, whole: bool = True) -> Dict[str, Any]:
        """What is carried over: an entry for a dictionary of states, or none; unless `whole`,
        without what the servers have."""
        return self._carries.fetch(whole)

    def put_back(self, states: Dict[Any, Any]) -> None:
        """Takes the entry out of the states and goes on from it; raises KVStoreError for what
        another method has carried over."""
        self._carries.put_back(states)

    def train_with(self, updater: Any) -> None:
        """Updates the keys that it trains itself by updater(name, gradient, value) from now on."""

    def check_join(self) -> None:
        """Raises KVStoreError where the worker may not call store.join now."""

    def begin_idle(self) -> None:
        """The worker takes no part in rounds from now on (store.join)."""

    def end_idle(self, missed: Dict[Key, int]) -> None:
        """It takes part again; so many rounds of each dense key have gone without it."""

    def catch_up(self) -> None:
        """Called after `end_idle` where rounds have gone without this worker, once the script's
        arrays have the servers' values again."""

    def zeros(self) -> float:
        """The share of compressed elements that came out as 0."""
        # Not of those that travel plain, although they could be compressed.
        keys, counts = self._context.keys_of_method(), self.zero_counts()
        elements = sum(keys[name].elements for name in counts)
        zeros = sum(
            count / looked_at * keys[name].elements for name, (count, looked_at) in counts.items()
        )
        return zeros / elements if elements else 0.0

    def zero_counts(self) -> Dict[Key, Tuple[int, int]]:
        """How many elements came out as 0, of how many that were looked at: of keys that were."""
        counts = {key.name: self.codecs[key.name].zeros() for key in self._keys()}
        return {name: count for name, count in counts.items() if count[1]}

    def scalers(self) -> Dict[Key, float]:
        """The last ones of the keys that have any."""
        scalers = {key.name: self.codecs[key.name].scaler() for key in self._keys()}
        return {name: scaler for name, scaler in scalers.items() if scaler > 0}

    def _keys(self) -> List[KeyArrays]:
        return list(self._context.keys_of_method().values())

    def global_parameters(self) -> ContextManager[None]:
        """Has the script's parameters be the global ones for the block."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Waits for what it does beside the store's operations."""
