"""One key at its worker: its shape and type, and the arrays between the devices and the lane."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple, Union

import mxnet as mx
import numpy as np

from . import _core
from .compression import Compression
from .errors import ArrayMismatch
from .keys import storage, stype_of

# MXNet's type flags, which csrc/dtype.h knows.
DTYPES = {np.float32: 0, np.float64: 1, np.float16: 2}

# Above these the lane's own control messages have their place.
_PRIORITY_LIMIT = (1 << 31) - 2


class KeyArrays:
    """A key's arrays.

    A single array on the CPU is read and written by the lane where it lies. Arrays on several
    devices, or on a GPU, meet in one buffer on the CPU: MXNet's own sum and copies fill it and
    empty it, in order with the computation.
    """

    def __init__(self, name: Union[int, str], identity: int, value: mx.nd.NDArray) -> None:
        dtype = np.dtype(value.dtype).type  # arrays of mx.np have a np.dtype, others the type
        if dtype not in DTYPES:
            raise ArrayMismatch(
                f"key {name!r}: got an array of {np.dtype(dtype).name}; allowed are "
                f"{', '.join(np.dtype(known).name for known in DTYPES)}"
            )
        self.name = name
        self.identity = identity
        self.shape: Tuple[int, ...] = value.shape
        self.dtype = dtype
        self.compressed = False
        self.codec: Any = None  # of the core; once declared
        # Every operation on the key writes this, so that they come one after the other.
        self._order = mx.nd.zeros((1,))
        self._buffer: Optional[mx.nd.NDArray] = None

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    def declare(
        self,
        worker: _core.Worker,
        store: int,
        codec: _core.KeyCodec,
        compression: Optional[Compression] = None,
    ) -> None:
        """Tells the lane what it has to know, once.

        Parameters
        ----------
        store
            The number of the store that has the key.
        codec
            How it travels: the key's own.
        compression
            Of its gradients; None for none.
        """
        text = f"of shape {self.shape}, {np.dtype(self.dtype).name}"
        if compression is not None:
            text += f", compressed by {compression}"
        self.compressed = compression is not None
        self.codec = codec
        name = repr(self.name)
        worker.declare(
            self.identity, store, name, DTYPES[self.dtype], self.elements, codec, text
        )

    def check_pushed(self, arrays: List[mx.nd.NDArray]) -> None:
        """Raises ArrayMismatch for gradients that are not as the key was initialised; they may be
        row-sparse."""
        stype = stype_of(arrays[0])
        for array in arrays:
            self.check(array, stype if stype == "row_sparse" else "default")

    def check_pulled(self, arrays: List[mx.nd.NDArray]) -> None:
        """Raises ArrayMismatch for arrays that cannot take the key's value."""
        for array in arrays:
            self.check(array, "default")

    def check(self, array: mx.nd.NDArray, stype: str) -> None:
        """Raises ArrayMismatch for an array of another storage, shape or type than the key's."""
        if stype_of(array) != stype:
            raise ArrayMismatch(
                f"key {self.name!r}: got a {storage(array.stype)} array; it must be "
                f"{storage(stype)}"
            )
        if array.shape != self.shape:
            raise ArrayMismatch(
                f"key {self.name!r}: got an array of shape {array.shape}; it was initialised with "
                f"shape {self.shape}"
            )
        if array.dtype != self.dtype:
            raise ArrayMismatch(
                f"key {self.name!r}: got an array of {np.dtype(array.dtype).name}; it was "
                f"initialised as {np.dtype(self.dtype).name}"
            )

    def exchange(
        self,
        worker: _core.Worker,
        contributes: bool,
        values: Optional[List[mx.nd.NDArray]],
        outs: Optional[List[mx.nd.NDArray]],
        priority: int,
        step: int,
        settings: str = "",
        plain: bool = False,
    ) -> None:
        """Queues one operation of the lane, with what moves arrays to it and from it.

        contributes opens the key's next round with the sum of values; outs get its result. Without
        contributes, outs get the result of the last round. The settings are rank 0's for the
        servers' optimizer (settings.py). A plain operation is not compressed.
        """
        source = None if values is None else self._gather(values)
        target = None if not outs else self._target(outs)
        self._push(worker, contributes, source, target, (priority, step, settings, plain))
        if target is not None and outs is not None:
            for out in outs:
                if out is not target:
                    target.copyto(out)

    def merge(
        self, worker: _core.Worker, local: mx.nd.NDArray, priority: int, step: int, settings: str
    ) -> None:
        """Queues a round of Slim-DP: pushes by what the local parameters have changed, and merges
        the global ones into them."""
        on_cpu = local.context.device_type == "cpu"
        array = local if on_cpu else local.copyto(self._staging([local]))
        self._push(worker, True, array, array, (priority, step, settings, False))
        if not on_cpu:
            array.copyto(local)

    def broadcast(
        self, worker: _core.Worker, root: int, is_root: bool, array: mx.nd.NDArray, priority: int
    ) -> None:
        """Queues a round that gives the root's array to all others, instead of a sum to all."""
        on_cpu = array.context.device_type == "cpu"
        buffer = array if on_cpu else self._staging([array])
        if is_root and not on_cpu:
            array.copyto(buffer)
        source, target = (buffer, None) if is_root else (None, buffer)
        self._push(worker, True, source, target, (priority, 0, "", False), root)
        if not is_root and not on_cpu:
            buffer.copyto(array)

    def _push(
        self,
        worker: _core.Worker,
        contributes: bool,
        source: Optional[mx.nd.NDArray],
        target: Optional[mx.nd.NDArray],
        how: Tuple[int, int, str, bool],
        root: Optional[int] = None,
    ) -> None:
        priority, step, settings, plain = how
        kind = _core.Kind.PULL if not contributes else _core.Kind.PUSH
        worker.push_to_engine(
            self.identity,
            kind if root is None else _core.Kind.BROADCAST,
            0 if source is None else source.handle.value,
            0 if target is None else target.handle.value,
            self._order.handle.value,
            max(-_PRIORITY_LIMIT, min(_PRIORITY_LIMIT, priority)),
            step,
            settings,
            plain,
            0 if root is None else root,
        )

    def wait(self) -> None:
        """Waits for all operations on the key; raises MXNetError where one failed."""
        self._order.wait_to_read()

    def _gather(self, values: List[mx.nd.NDArray]) -> mx.nd.NDArray:
        """The sum of values, on the CPU."""
        on_cpu = all(value.context.device_type == "cpu" for value in values)
        if on_cpu:
            return values[0] if len(values) == 1 else total_of(values, self._staging(values))
        return total_of(values).copyto(self._staging(values))

    def _target(self, outs: List[mx.nd.NDArray]) -> mx.nd.NDArray:
        """Where the lane writes a result for outs."""
        if len(outs) == 1 and outs[0].context.device_type == "cpu":
            return outs[0]
        return self._staging(outs)

    def _staging(self, arrays: List[mx.nd.NDArray]) -> mx.nd.NDArray:
        if self._buffer is None:
            on_gpu = any(array.context.device_type == "gpu" for array in arrays)
            context = mx.cpu_pinned() if on_gpu else mx.cpu()
            self._buffer = mx.nd.empty(self.shape, context, self.dtype)
        return self._buffer


def total_of(arrays: List[mx.nd.NDArray], out: Optional[mx.nd.NDArray] = None) -> mx.nd.NDArray:
    """The sum of arrays, where the first one is, or in `out`; of one array, itself."""
    if len(arrays) == 1:
        return arrays[0]
    if all(array.context.device_type == "cpu" for array in arrays):
        # Needs no copies, unlike MXNet's stores, which keep one a device.
        return mx.nd.add_n(*arrays, out=out)
    device = arrays[0].context
    return mx.nd.add_n(*[array.as_in_context(device) for array in arrays], out=out)
