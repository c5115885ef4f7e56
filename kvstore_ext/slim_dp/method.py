"""A store with Slim-DP: it trains its keys on the worker, but for those that are excluded."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ContextManager, Dict, Optional

import mxnet as mx

from .. import _core
from ..compression.store_context import Adopted, StoreContext
from ..compression.store_method import StoreMethod
from ..errors import KVStoreError
from ..keys.key_arrays import KeyArrays
from ..keys.key_policy import KeyPolicy
from ..keys.names import Key
from .local_training import LocalTraining
from .states import SlimStates
from .trained_locally import TrainedLocally

if TYPE_CHECKING:
    from ..compression import Compression
    from .options import SlimDP


class SlimMethod(StoreMethod):
    """Keys that are excluded are updated on every worker by the mean of the gradients, as the
    others are by the worker's own."""

    trains_on_workers = True

    def __init__(self, context: StoreContext, options: SlimDP) -> None:
        super().__init__(context, options)
        self.gradient_divisor = context.workers
        self._options = options
        self._training = LocalTraining(context, options)
        self._policies: Dict[Key, TrainedLocally] = {}
        self._carries = SlimStates(self._training, self.codecs, context)

    def excludes(self, name: Key) -> bool:
        # What is not trained has no update, and no place in the core.
        return name in self._context.adopted.untrained or super().excludes(name)

    def check_new(self, name: Key, value: mx.nd.NDArray) -> None:
        super().check_new(name, value)
        if not self.excludes(name):
            self._training.check_new(name)

    def check_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Raises KVStoreError where the optimizer's names exclude a key that is trained already."""
        super().check_optimizer(optimizer)
        told = Adopted()
        told.learn(optimizer)
        late = [name for name in self.codecs if self._options.excludes(name, told.names.get(name))]
        if late:
            raise KVStoreError(
                f"slim_dp: the option exclude, {list(self._options.exclude)}, names key "
                f"{late[0]!r} by its parameter {told.names.get(late[0])!r}, which the store hears "
                "only now, when the key is trained on the workers already: call set_optimizer or "
                "adopt_optimizer before init, or exclude keys by their numbers"
            )

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Learns parameters' names; raises KVStoreError as `check_optimizer`."""
        self.check_optimizer(optimizer)
        super().adopt(optimizer)

    def codec(self, compression: Compression, key: KeyArrays) -> _core.SlimKey:
        return _core.SlimKey(self._training.model, self._context.workers)

    def policy(self, key: KeyArrays) -> Optional[KeyPolicy]:
        if not key.compressed:
            return None
        if key.name not in self._policies:
            details = self._context.push_details
            self._policies[key.name] = TrainedLocally(
                key, self._training, details, self._begin_anew
            )
        return self._policies[key.name]

    def trains(self, name: Key) -> bool:
        return name in self._policies

    def train_with(self, updater: Any) -> None:
        self._training.updater = updater

    def check_join(self) -> None:
        self._training.check_shows_own("the worker joins")

    def begin_idle(self) -> None:
        self._training.begin_idle()

    def end_idle(self, missed: Dict[Key, int]) -> None:
        self._training.end_idle(missed)

    def progress(self) -> Any:
        return self._training.progress()

    def follow(self, progress: Any) -> None:
        self._training.follow(progress)

    def catch_up(self) -> None:
        # The worker's own model begins anew with the global one.
        for name in self._training.arrays:
            self._begin_anew(name)

    def _begin_anew(self, name: Key) -> None:
        parameters = self._training.arrays[name][0]
        self.codecs[name].set_base(parameters.asnumpy().reshape(-1))

    def global_parameters(self) -> ContextManager[None]:
        return self._training.global_parameters()

    def close(self) -> None:
        self._training.selector.close()
