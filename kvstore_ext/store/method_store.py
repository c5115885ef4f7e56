"""What a script may set, ask and tell of its store's method (StoreMethod)."""
from __future__ import annotations

from typing import Any, ContextManager, Mapping, Optional, Union

import mxnet as mx

from ..compression import (
    OF_STORES,
    Compression,
    option_names,
    options_of_environment,
    parse,
)
from ..compression.store_method import StoreMethod
from ..config import Options
from ..errors import KVStoreError
from ..keys.names import Pairs
from ..notes import warn_script
from .key_router import KeyRouter
from .lane_store import LaneStore


class MethodStore(LaneStore):
    """A store with keys and a method, which may be none."""

    # Of a store that has its name from a compression.
    method_name: Optional[str] = None

    def __init__(self, options: Optional[Options] = None) -> None:
        compression = None
        if self.method_name is not None:
            compression = parse(self.method_name, **options_of_environment())
        super().__init__(options or Options.from_environment(option_names()))
        self._router = KeyRouter(self._lane)
        self._has_all_keys = False
        if compression is not None:
            self._router.compress(compression)

    def _finish(self) -> None:
        self._router.method.close()

    def _before_push(self, values: Pairs) -> None:
        """To be called with what is about to be pushed: once a step has ended, the store has all
        keys, and knows what they are called."""
        if not self._has_all_keys and self._router.begins_step(name for name, _ in values):
            self._has_all_keys = True
            self._router.method.warn_of_exclude(self._router.policies)

    @property
    def type(self) -> str:
        """'dist_sync_p3', or with a compression's name at the end; or the method's own type.

        Trainer and Module look for 'dist' in it. With '_sync' Module divides a gradient by the
        batch of all workers, of which the sum is taken. A method whose optimizers see the worker's
        own gradients has a type without it.
        """
        return self._router.method.store_type or f"dist_sync_{self.method_name or 'p3'}"

    @property
    def compression(self) -> Optional[Compression]:
        """The method that the store has, with its options; None for a store without one."""
        return self._router.method.compression

    def is_capable(self, capability: str) -> bool:
        """As MXNet's; 'optimizer' is False where sums had better travel back compressed, so that
        Trainer and Module update on the workers."""
        if capability.lower() == "optimizer" and self._router.method.prefers_workers:
            return False
        return bool(super().is_capable(capability))

    def set_gradient_compression(self, compression_params: Union[str, Mapping[str, Any]]) -> None:
        """Compresses gradients, and their sums where no optimizer runs on the servers.

        Parameters
        ----------
        compression_params
            {'type': 'terngrad', 'clip_sigma': 2.5}, or 'terngrad' alone: see compression/, or
            kvstore-ext --list. Options that are not given are taken from
            KVSTORE_EXT_OPTIONS. A store that has its name from a type may get options of that.

        Raises
        ------
        OptionError
            For an unknown type or option, or a value out of range.
        KVStoreError
            For another compression than before once there are keys or an optimizer, or another type
            than the store has its name from.
        """
        self._check_open()
        of_name = {} if self.method_name is None else {"type": self.method_name}
        compression = parse(compression_params, **of_name, **options_of_environment())
        if self.method_name not in (None, compression.name):
            raise KVStoreError(
                f"the store {self.method_name!r} cannot have the compression {compression.name!r}; "
                f"mx.kv.create('p3') can, or leave out compression_params"
            )
        self._router.compress(compression)

    def adopt_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Tells a compressing store of the optimizer with which the script updates parameters.

        To be called by scripts that update parameters themselves; for Trainer and Module it is.

        The store learns parameters' names for the options `exclude` and `last_layer`. With
        `exclude_last` it takes its keys for the network's parameters from the first layer to the
        last, in the order of their first values. With dgc it applies the optimizer's momentum in
        its stead, sets it to 0, and raises `wd` to what momentum would make of it.

        Raises
        ------
        KVStoreError
            With dgc, for a momentum that is not plain SGD's.
        """
        self._check_open()
        self._router.adopt(optimizer)

    def global_parameters(self) -> ContextManager[None]:
        """Has the script's parameters be the global ones for the block, to test or save them.

        Where every worker trains a model of its own, that of the servers takes its place, and it
        comes back afterwards; in other stores they are the same.

            with store.global_parameters():
                print(accuracy(net, validation_data))
                net.save_parameters("model.params")
        """
        self._check_open()
        return self._router.method.global_parameters()

    @property
    def method(self) -> StoreMethod:
        """What the store's method decides, and carries over from round to round."""
        return self._router.method

    def _warn_of_plain_parameters(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Says how sums could travel back compressed, where an optimizer on the servers has
        parameters travel instead."""
        compression = self.compression
        if compression is None or not compression.prefers_workers or not self._router.on_servers:
            return
        sparse = [
            parameter.name
            for parameter in optimizer.param_dict.values()
            if "row_sparse" in (parameter._stype, parameter._grad_stype)
        ]
        if sparse:
            why = f"which Trainer wants for row-sparse gradients, such as that of {sparse[0]!r}"
        elif self.method_name is None:
            why = (
                "with Trainer(..., update_on_kvstore=False), or a store of the name "
                f"{compression.name!r}, sums travel back, compressed"
            )
        else:
            why = (
                "for sums to travel back, compressed, leave set_optimizer out: call "
                "adopt_optimizer, and update by mx.optimizer.get_updater"
            )
        warn_script(
            "the optimizer runs on the servers, so that parameters travel back, uncompressed; "
            + why
        )

    def _warn_of_unused_options(self) -> None:
        unused = [name for name in options_of_environment() if name not in OF_STORES]
        if unused and self.compression is None:
            warn_script(
                f"KVSTORE_EXT_OPTIONS has options of a compression, {', '.join(unused)}, but the "
                f"store {self.type} compresses nothing; mx.kv.create('terngrad'), say, does"
            )
