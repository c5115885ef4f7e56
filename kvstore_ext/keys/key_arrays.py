"""One key at its worker: its shape and type, and the arrays between the devices and the lane."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import mxnet as mx
import numpy as np

from .. import _core
from ..errors import ArrayMismatch, of_job
from .key_parts import KeyPart
from .names import storage, stype_of

# MXNet's type flags, which csrc/support/dtype.h knows.
DTYPES = {np.float32: 0, np.float64: 1, np.float16: 2}

# Above these the lane's own control messages have their place.
_PRIORITY_LIMIT = (1 << 31) - 2


class PushDetails(NamedTuple):
    """What accompanies a push.

    priority
        The caller's: keys with higher ones go first until the order is learned.
    step
        How often this worker's most updated key has been pushed.
    settings
        Of the optimizer, for the servers (optimizer/settings.py); empty: as before.
    plain
        Whether a compressed key travels uncompressed this time.
    """

    priority: int = 0
    step: int = 0
    settings: str = ""
    plain: bool = False


class KeyArrays:
    """A key's arrays. Its operations run in MXNet's engine, one after the other; all calls return
    at once, but for `wait`.

    A single array on the CPU is read and written by the lane where it lies. Arrays on several
    devices, or on a GPU, meet in one buffer on the CPU: MXNet's own sum and copies fill it and
    empty it, in order with the computation. As with `dist_sync`, each of several GPUs has a copy of
    its array there before, and none takes another's memory.
    """

    def __init__(
        self,
        worker: _core.Worker,
        name: Union[int, str],
        identity: int,
        value: mx.nd.NDArray,
    ) -> None:
        dtype = np.dtype(value.dtype).type  # arrays of mx.np have a np.dtype, others the type
        if dtype not in DTYPES:
            raise ArrayMismatch(
                f"key {name!r}: got an array of {np.dtype(dtype).name}; allowed are "
                f"{', '.join(np.dtype(known).name for known in DTYPES)}; leave a constant of "
                "another type out of what Trainer is given"
            )
        self._worker = worker
        self.name = name
        self.identity = identity
        self.shape: Tuple[int, ...] = value.shape
        self.dtype = dtype
        self.compressed = False
        self._store = -1  # until it is declared
        # Every operation on the key writes this, so that the engine gives each its turn.
        self._turn = mx.nd.zeros((1,), mx.cpu())
        self._buffer: Optional[mx.nd.NDArray] = None
        self._copies: Dict[int, mx.nd.NDArray] = {}  # by the array's place among those pushed

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    def declare(
        self, store: int, codec: _core.KeyCodec, compression: str = "", parameter: str = ""
    ) -> None:
        """Tells the lane what it has to know, once.

        Parameters
        ----------
        store
            The number of the store that has the key.
        codec
            How it travels: the key's own.
        compression
            What of it all workers must have alike, for people; empty for a key that has none.
        parameter
            The name of its parameter, for people; empty where it is not known.
        """
        text = f"of shape {self.shape}, {np.dtype(self.dtype).name}"
        if compression:
            text += f", compressed by {compression}"
        self.compressed = bool(compression)
        self._store = store
        literal, dtype = repr(self.name), DTYPES[self.dtype]
        name = literal if parameter in ("", self.name) else f"{literal} ({parameter})"
        self._worker.declare(
            self.identity, store, literal, name, dtype, self.elements, codec, text
        )

    def parts(self) -> List[KeyPart]:
        """Its slices, as the servers have them."""
        return [
            KeyPart(server, "slice", (self._store, self.identity, index), begin, (length,))
            for index, begin, length, server in self._worker.slices(self.identity)
        ]

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
        flag = DTYPES[self.dtype]
        if stype == "default" and _core.is_dense_like(array.handle.value, self.shape, flag):
            return  # MXNet's properties take as long as all the rest of a small key's push
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

    def init(
        self, value: mx.nd.NDArray, outs: Optional[List[mx.nd.NDArray]], priority: int
    ) -> None:
        """Gives the key its first value, rank 0's, and writes it into outs."""
        self.pushpull([value], outs, PushDetails(priority))

    def push(self, values: List[mx.nd.NDArray], details: PushDetails) -> None:
        """Opens the key's next round with the sum of values, one a device."""
        self._queue(_core.Kind.PUSH, self._gather(values), None, details)

    def pull(self, outs: List[mx.nd.NDArray], priority: int) -> None:
        """Writes the result of the last round into outs, one a device."""
        target = self._target(outs)
        self._queue(_core.Kind.PULL, None, target, PushDetails(priority))
        _spread(target, outs)

    def pushpull(
        self,
        values: List[mx.nd.NDArray],
        outs: Optional[List[mx.nd.NDArray]],
        details: PushDetails,
    ) -> None:
        """`push`, and `pull` where there are outs, as one operation; they may be the values."""
        if not outs:
            return self.push(values, details)
        source = self._gather(values)
        target = self._target(outs)
        self._queue(_core.Kind.PUSH, source, target, details)
        return _spread(target, outs)

    def broadcast(self, root: int, is_root: bool, array: mx.nd.NDArray, priority: int) -> None:
        """Opens a round that gives the root's array to all others, instead of a sum to all."""
        on_cpu = _is_on_cpu(array)
        buffer = array if on_cpu else self._staging([array])
        if is_root and not on_cpu:
            array.copyto(buffer)
        source, target = (buffer, None) if is_root else (None, buffer)
        self._queue(_core.Kind.BROADCAST, source, target, PushDetails(priority), root)
        if not is_root and not on_cpu:
            buffer.copyto(array)

    def _queue(
        self,
        kind: _core.Kind,
        source: Optional[mx.nd.NDArray],
        target: Optional[mx.nd.NDArray],
        details: PushDetails,
        root: int = 0,
    ) -> None:
        self._worker.push_to_engine(
            self.identity,
            kind,
            0 if source is None else source.handle.value,
            0 if target is None else target.handle.value,
            self._turn.handle.value,
            max(-_PRIORITY_LIMIT, min(_PRIORITY_LIMIT, details.priority)),
            details.step,
            details.settings,
            details.plain,
            root,
        )

    def wait(self) -> None:
        """Waits for all operations on the key; raises ClusterError where the job has failed, and
        MXNetError where one of them has for another reason."""
        with of_job(self._worker.failure):
            self._turn.wait_to_read()

    def _gather(self, values: List[mx.nd.NDArray]) -> mx.nd.NDArray:
        """The sum of values, on the CPU."""
        if len(values) == 1:
            (value,) = values
            return value if _is_on_cpu(value) else value.copyto(self._staging(values))
        parts = [self._on_cpu(place, value) for place, value in enumerate(values)]
        return mx.nd.add_n(*parts, out=self._staging(values))

    def _on_cpu(self, place: int, value: mx.nd.NDArray) -> mx.nd.NDArray:
        if _is_on_cpu(value):
            return value
        if place not in self._copies:
            self._copies[place] = mx.nd.empty(self.shape, _memory_for([value]), self.dtype)
        return value.copyto(self._copies[place])

    def _target(self, outs: List[mx.nd.NDArray]) -> mx.nd.NDArray:
        """Where the lane writes a result for outs."""
        if len(outs) == 1 and _is_on_cpu(outs[0]):
            return outs[0]
        return self._staging(outs)

    def _staging(self, arrays: List[mx.nd.NDArray]) -> mx.nd.NDArray:
        if self._buffer is None:
            self._buffer = mx.nd.empty(self.shape, _memory_for(arrays), self.dtype)
        return self._buffer


def _is_on_cpu(array: mx.nd.NDArray) -> bool:
    return _core.is_on_cpu(array.handle.value)


def _memory_for(arrays: List[mx.nd.NDArray]) -> mx.Context:
    """Where copies of arrays lie on the CPU: for GPUs in pinned memory."""
    # Without a number it is GPU 0's, which MXNet would then open in every worker of the host.
    gpus = [array.context for array in arrays if array.context.device_type == "gpu"]
    return mx.cpu_pinned(gpus[0].device_id) if gpus else mx.cpu()


def _spread(target: mx.nd.NDArray, outs: List[mx.nd.NDArray]) -> None:
    for out in outs:
        if out is not target:
            target.copyto(out)


def total_of(arrays: List[mx.nd.NDArray]) -> mx.nd.NDArray:
    """The sum of arrays, where the first one is; of one array, itself."""
    if len(arrays) == 1:
        return arrays[0]
    if all(_is_on_cpu(array) for array in arrays):
        return mx.nd.add_n(*arrays)  # without copies
    device = arrays[0].context
    return mx.nd.add_n(*[array.as_in_context(device) for array in arrays])
