"""What workers command servers about their optimizers."""
from __future__ import annotations

from typing import Callable, Tuple

from ..protocol.commands import SET_OPTIMIZER, SPARSE_SETTINGS, Commands
from .native_updater import NativeUpdater
from .optimizer_format import unpack_optimizer
from .slice_optimizer import OptimizerLoop, SliceOptimizer


class OptimizerCommands:
    """Gives a server the optimizers that workers send.

    Parameters
    ----------
    loop, native
        What updates slices, and sparse keys.
    use_native
        Has MXNet's server call the updater of sparse keys.
    trusted_modules
        Modules of users' optimizers that may be loaded.
    """

    def __init__(
        self,
        loop: OptimizerLoop,
        native: NativeUpdater,
        use_native: Callable[[NativeUpdater], None],
        trusted_modules: Tuple[str, ...],
    ) -> None:
        self._loop = loop
        self._native = native
        self._use_native = use_native
        self._trusted_modules = trusted_modules

    def register(self, commands: Commands) -> None:
        """Executes what concerns optimizers."""
        commands.register(SET_OPTIMIZER, self._set_optimizer)
        commands.register(SPARSE_SETTINGS, self._apply_settings)

    def _set_optimizer(self, arguments: str) -> None:
        number, keys, packed = arguments.split(" ", 2)
        store = int(number)
        if keys != "sparse":
            optimizer, factors = unpack_optimizer(packed, self._trusted_modules)
            self._loop.set_optimizer(store, SliceOptimizer(optimizer, factors))
        # A second one for the stock server, whose keys count their updates by themselves.
        stock, factors = unpack_optimizer(packed, self._trusted_modules)
        self._native.set_optimizer(store, stock, factors)
        self._use_native(self._native)

    def _apply_settings(self, arguments: str) -> None:
        number, settings = arguments.split(" ", 1)
        self._native.apply(int(number), settings)
