"""The workers' models on their way through a store."""
from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator, List, Optional, Sequence

import mxnet as mx
import numpy as np
from mxnet import gluon

from ..errors import ClusterError, KVStoreError, of_job

# Parameters of fewer bytes travel together in one array.
_SMALL = 65536
_numbers = itertools.count()


class Models:
    """A worker's model, and the others' through the store.

    A model is all of a network's parameters, running statistics of batch normalisation included:
    they travel, are averaged and are ensembled with the model that they belong to.

    Parameters
    ----------
    network
        Initialised, on one device. It holds the worker's model, but for the time of `each`.
    store
        A store that has no optimizer and does not compress.
    wire
        The type of numbers on their way; None for the parameters' own.
    training
        What else has to be equal on all workers, as text for an error.
    prefetch
        While a network holds one worker's model, the next one's is on its way.

    Raises
    ------
    ClusterError
        Where another worker's network has other parameters, or it trains otherwise.
    """

    def __init__(
        self,
        network: gluon.Block,
        store: Any,
        wire: Optional[str] = None,
        training: str = "",
        prefetch: bool = True,
    ) -> None:
        self._parameters = list(network.collect_params().values())
        self._store, self._wire, self._prefetch = store, wire, prefetch
        self._name = f"ec_dnn {next(_numbers)}"
        self._summed: Dict[int, str] = {}  # keys of vectors by their size
        self._averaged = False
        self._groups = _groups(self.arrays())
        self.rank, self.count = store.rank, store.num_workers
        self._compare(training)

    def arrays(self) -> List[mx.nd.NDArray]:
        """The network's parameters, where they lie."""
        return [parameter.data() for parameter in self._parameters]

    def copy(self) -> List[mx.nd.NDArray]:
        """A copy of the network's parameters."""
        return [array.copy() for array in self.arrays()]

    def put(self, values: Sequence[mx.nd.NDArray]) -> None:
        """Has the network hold these."""
        for array, value in zip(self.arrays(), values):
            value.copyto(array)

    def each(self, own: Optional[Sequence[mx.nd.NDArray]] = None) -> Iterator[int]:
        """Has the network hold every worker's model in turn, and yields whose it is.

        All workers do so together, in the order of ranks. Besides its own, a worker has one model
        in memory at a time, and with `prefetch` two. Afterwards the network holds what it held.

        Parameters
        ----------
        own
            What to give to the others; None for what the network holds.
        """
        held = self.copy()
        given = held if own is None else list(own)
        coming = self.copy() if self._prefetch else self.arrays()
        try:
            for rank in range(self.count):
                if rank == 0 or not self._prefetch:
                    self._ask(rank, given, coming)
                if self._prefetch:
                    self.put(coming)
                self.wait()
                if self._prefetch and rank + 1 < self.count:
                    self._ask(rank + 1, given, coming)
                yield rank
        finally:
            self.put(held)

    def broadcast(self, root: int, given: Sequence[mx.nd.NDArray]) -> None:
        """Has every worker's network hold what worker `root` gives; waits for it."""
        self._ask(root, given, self.arrays())
        self.wait()

    def wait(self) -> None:
        """Until the network's parameters are computed, or have come."""
        self._wait_for(self.arrays())

    def _wait_for(self, arrays: Sequence[mx.nd.NDArray]) -> None:
        """Until they are written; raises ClusterError where the job has failed meanwhile."""
        worker = getattr(self._store, "_worker", None)
        with of_job(worker.failure if worker is not None else lambda: ""):
            for array in arrays:
                array.wait_to_read()

    def _ask(
        self, root: int, given: Sequence[mx.nd.NDArray], into: Sequence[mx.nd.NDArray]
    ) -> None:
        """Has every worker's arrays `into` hold what worker `root` gives; waits for nothing."""
        if root == self.rank:
            for value, array in zip(given, into):
                value.copyto(array)
        arrays = given if root == self.rank else into
        for position, group in enumerate(self._groups):
            self._broadcast_group(root, position, [arrays[index] for index in group])

    def _broadcast_group(self, root: int, position: int, arrays: List[mx.nd.NDArray]) -> None:
        dtype = self._wire or arrays[0].dtype
        direct = len(arrays) == 1 and arrays[0].dtype == np.dtype(dtype)
        if direct:
            flat = arrays[0]
        elif root == self.rank:
            flat = _rounded(_join(arrays), dtype)
        else:
            size = sum(array.size for array in arrays)
            flat = mx.nd.empty((size,), arrays[0].context, dtype)
        # In the order in which a forward pass needs them.
        self._store.broadcast_from(root, f"{self._name} model {position}", flat, -position)
        if root != self.rank and not direct:
            _part(flat, arrays)

    def average(self, weight: float) -> None:
        """Has the network hold the sum of the workers' models, each times its weight (equation 1).

        The first call also makes the store's keys.
        """
        self._begin_averages()
        arrays = self.arrays()
        for position, group in enumerate(self._groups):
            parts = [arrays[index] for index in group]
            flat = _join(parts) * weight
            self._store.pushpull(f"{self._name} sum {position}", flat, flat, -position)
            _part(flat, parts)
        self.wait()

    def begin_alike(self) -> None:
        """Has the network hold worker 0's model."""
        self._begin_averages()
        if self.count > 1:
            self.broadcast(0, self.copy())

    def _begin_averages(self) -> None:
        if self._averaged:
            return
        self._averaged = True
        arrays = self.arrays()
        for position, group in enumerate(self._groups):
            size = sum(arrays[index].size for index in group)
            zeros = mx.nd.zeros((size,), arrays[group[0]].context, arrays[group[0]].dtype)
            self._store.init(f"{self._name} sum {position}", zeros)

    def sum(self, numbers: np.ndarray) -> np.ndarray:
        """The sum over the workers of an array, float64, of any shape but the same on all."""
        vector = mx.nd.array(numbers.ravel(), dtype=np.float64)
        key = self._summed.get(vector.size)
        if key is None:
            key = self._summed[vector.size] = f"{self._name} numbers {vector.size}"
            self._store.init(key, mx.nd.zeros_like(vector))
        self._store.pushpull(key, vector)
        self._wait_for([vector])
        return np.asarray(vector.asnumpy().reshape(numbers.shape))

    def fail(self, reason: str) -> None:
        """Ends the job on all workers; raises ClusterError."""
        self._store.fail(reason)
        raise ClusterError(f"worker {self.rank}: {reason}")

    def _compare(self, training: str) -> None:
        """With worker 0's training and parameters, before any of them travels."""
        ours = [training, *self.shapes()]
        first = self._of_first("\n".join(ours)).split("\n")
        if ours[0] != first[0]:
            self.fail(f"workers train differently: {ours[0]} here, {first[0]} on worker 0")
        pairs = itertools.zip_longest(ours[1:], first[1:], fillvalue="none")
        for index, (own, other) in enumerate(pairs):
            if own != other:
                self.fail(
                    f"the networks differ: parameter {index} is {own} here and {other} on worker "
                    f"0; found {len(ours) - 1} parameters here and {len(first) - 1} there"
                )

    def shapes(self) -> List[str]:
        """Of the network's parameters, with their types."""
        return [f"{array.shape} {np.dtype(array.dtype).name}" for array in self.arrays()]

    def _of_first(self, text: str) -> str:
        """Worker 0's text."""
        own = np.frombuffer(text.encode(), np.uint8).astype(np.float32)
        size = mx.nd.array([own.size], dtype=np.float64)
        self._store.broadcast_from(0, f"{self._name} size", size)
        self._wait_for([size])
        array = mx.nd.array(own) if self.rank == 0 else mx.nd.zeros((int(size.asscalar()),))
        self._store.broadcast_from(0, f"{self._name} about", array)
        self._wait_for([array])
        return bytes(array.asnumpy().astype(np.uint8)).decode()


def check_store(store: Any) -> None:
    """Raises KVStoreError for a store that cannot carry models."""
    if not hasattr(store, "broadcast_from"):
        raise KVStoreError(
            f"ec_dnn: the store is a {getattr(store, 'type', type(store).__name__)}; it must be "
            "one of kvstore_ext, such as mx.kv.create('p3')"
        )
    if getattr(store, "_updater", None) is not None:
        raise KVStoreError("ec_dnn: the store has an optimizer; workers update by themselves")
    method = getattr(store, "compression", None)
    if method is not None:
        raise KVStoreError(
            f"ec_dnn: the store compresses by {method.name}, which is for gradients, not for "
            "models; it must be p3, with Method(wire='float16') if need be"
        )
    options = getattr(store, "_options", None)
    if options is not None and options.non_finite == "skip":
        raise KVStoreError(
            "ec_dnn: the store's option non_finite is 'skip', by which a model that is not finite "
            "would be taken for zeros by all; it must be 'keep' or 'raise'"
        )


def _rounded(array: mx.nd.NDArray, dtype: Any) -> mx.nd.NDArray:
    """In another type, the nearest finite numbers of it: a running variance above float16's 65,504
    would put out its channel as infinity."""
    if array.dtype == np.dtype(dtype):
        return array
    largest = float(np.finfo(dtype).max)
    return array.clip(-largest, largest).astype(dtype)


def _groups(arrays: Sequence[mx.nd.NDArray]) -> List[List[int]]:
    """Indices of arrays that travel together: large ones alone, small ones by their types."""
    groups: List[List[int]] = []
    small: Dict[Any, List[int]] = {}
    for index, array in enumerate(arrays):
        dtype = np.dtype(array.dtype)
        if array.size * dtype.itemsize >= _SMALL:
            groups.append([index])
        elif dtype in small:
            small[dtype].append(index)
        else:
            small[dtype] = [index]
            groups.append(small[dtype])
    return groups


def _join(arrays: Sequence[mx.nd.NDArray]) -> mx.nd.NDArray:
    return mx.nd.concat(*[array.reshape(-1) for array in arrays], dim=0)


def _part(flat: mx.nd.NDArray, arrays: Sequence[mx.nd.NDArray]) -> None:
    """Writes what `_join` has joined back into the arrays."""
    begin = 0
    for array in arrays:
        part = flat[begin : begin + array.size].reshape(array.shape)
        part.astype(array.dtype, copy=False).copyto(array)
        begin += array.size
