"""Workers that train with Slim-DP.

As gradients.py does for compressed gradients; but every worker has a model and an optimizer of its
own (kvstore_ext/slim_dp/). The model is one vector, in which the slices of all keys lie one after
the other: what a worker communicates of a slice depends on how keys are cut.
"""
from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence

import mxnet as mx
import numpy as np
from kvstore_ext import Options, _core
from kvstore_ext.compression import Compression
from kvstore_ext.keys.names import identity
from kvstore_ext.methods import SlimDP
from mxnet import gluon

from .network import Batch, Network

# As kvstore_ext/csrc/slim_dp/slim_key.cc and slim_model.cc have them.
ELEMENT_BYTES = 4  # of a key that is cut
ALIGNMENT = 64  # elements
SHARES_KEY = 0x7368617265730000


@dataclass(frozen=True)
class Slice:
    """Where a slice lies: in its key from `offset` on, in the model from `begin` on."""

    key: int
    offset: int
    begin: int
    length: int


def cut(sizes: Dict[int, int], servers: int, slice_bytes: int) -> List[Slice]:
    """The slices of a model, whose keys have so many elements, in order."""
    slices, begin = [], 0
    for key, size in sizes.items():
        parts = _core.slice_key(key, size, ELEMENT_BYTES, slice_bytes, servers, ALIGNMENT)
        slices += [Slice(key, offset, begin + offset, length) for _, offset, length, _ in parts]
        begin += size
    return slices


class Core:
    """What is always communicated while a selection holds.

    Parameters
    ----------
    members
        Whether each element of the model is one: bool.
    """

    def __init__(self, members: np.ndarray, slices: List[Slice]) -> None:
        self._slices = slices
        parts = [members[each.begin : each.begin + each.length] for each in slices]
        self._members = [
            _core.Subset(part.size, np.flatnonzero(part).tolist()) for part in parts
        ]
        self._outside = [int(np.count_nonzero(~part)) for part in parts]

    def explored(self, count: int, seed: int, rank: int, number: int) -> np.ndarray:
        """With the elements that a worker's explorer adds in a round: whether each is one."""
        shares = _core.stream_of(seed, rank, SHARES_KEY, number)
        outside = sum(self._outside)
        masks = []
        for place, slice_ in enumerate(self._slices):
            free = self._outside[place]
            share = _core.draw_share(outside, free, count, shares, place) if count else 0
            stream = _core.stream_of(seed, rank, slice_.key, number) ^ slice_.offset
            masks.append(self._members[place].explore(share, _core.mix(stream)).mask())
            outside -= free
            count -= share
        return np.concatenate(masks)


class GlobalModel:
    """The servers: the global parameters, and the cores that are chosen from them."""

    def __init__(self, method: SlimDP, initial: np.ndarray, slices: List[Slice]) -> None:
        self.parameters = initial.copy()
        self._method = method
        self._slices = slices
        self._size, together = method.sizes(initial.size)
        self._explorers = together - self._size
        self._cores: Dict[int, Core] = {}  # by selection
        self._choose(0, np.zeros_like(initial))

    def communicated(self, rank: int, number: int) -> np.ndarray:
        """Whether a worker communicates each element in a round: bool."""
        method = self._method
        late = number - 1 - method.core_delay
        selection = max(0, late // method.q) if method.selects else 0
        return self._cores[selection].explored(self._explorers, method.seed, rank, number)

    def add(self, total: np.ndarray, pushes: np.ndarray, workers: int, number: int) -> None:
        """Ends a round with the sum of what workers pushed, and how many pushed each element."""
        method = self._method
        counted = np.maximum(pushes, 1) if method.explorer_mean == "pushed" else workers
        self.move(np.float32(method.server_lr / counted) * total)
        if method.selects and number % method.q == 0:
            self._choose(number // method.q, total)

    def move(self, update: np.ndarray) -> None:
        """Adds the mean update, server_lr included."""
        self.parameters += update

    def _choose(self, selection: int, update: np.ndarray) -> None:
        """Equation 1."""
        sizes, changes = np.abs(self.parameters), np.abs(update)
        significance = sizes + self._scale(sizes, changes) * changes
        members = _core.select_largest(significance, self._size).mask()
        self._cores[selection] = Core(members, self._slices)

    def _scale(self, sizes: np.ndarray, changes: np.ndarray) -> np.float32:
        """c."""
        if not isinstance(self._method.c, str):
            return np.float32(self._method.c)
        of_changes = self._sum(changes)
        return np.float32(self._sum(sizes) / of_changes if of_changes > 0 else 0.0)

    def _sum(self, values: np.ndarray) -> float:
        """Slice by slice, one element after the other, as the servers and rank 0 add them."""
        parts = [values[each.begin : each.begin + each.length] for each in self._slices]
        return sum(float(np.cumsum(part, dtype=np.float64)[-1]) for part in parts if part.size)


class LocalModel:
    """A worker's model, which its own optimizer trains."""

    def __init__(
        self, network: Network, initial: np.ndarray, optimizer: mx.optimizer.Optimizer
    ) -> None:
        self.parameters = initial.copy()
        self._base = initial.copy()
        self._network = network
        self._updater = mx.optimizer.get_updater(copy.deepcopy(optimizer))
        # The optimizer's arrays are parts of the vector.
        self._arrays = list(map(mx.nd.from_numpy, split(self.parameters, network)))

    def train(self, batch: Batch) -> None:
        """A step."""
        parameters = self._network.parameters
        for array, parameter in zip(self._arrays, parameters.values()):
            array.copyto(parameter.data())
        self._network.backward(batch)
        gradients = [parameter.grad() for parameter in parameters.values()]
        self._updater(list(parameters), gradients, self._arrays)
        for array in self._arrays:
            array.wait_to_read()

    def update(self) -> np.ndarray:
        """What training has added since the last round."""
        return self.parameters - self._base

    def merge(self, parameters: np.ndarray, communicated: np.ndarray) -> None:
        """Takes the global parameters over that were communicated."""
        self.parameters[:] = self._base = np.where(communicated, parameters, self.parameters)


class Values:
    """How updates travel to the servers where they are compressed.

    Attributes
    ----------
    elements, bytes
        What all workers have sent so far: elements, and what these took.
    """

    def __init__(self, method: Compression, workers: int, slices: List[Slice]) -> None:
        self.elements = self.bytes = 0
        self._seed = getattr(method, "seed", 0)
        self._codec = _core.Codec(method.specification(()), workers)
        self._keys: Dict[int, List[Slice]] = {}
        for each in slices:
            self._keys.setdefault(each.key, []).append(each)

    def travel(
        self, updates: Sequence[np.ndarray], pushed: Sequence[np.ndarray], number: int
    ) -> List[np.ndarray]:
        """What servers have of each worker's update: 0 where it pushes nothing."""
        arrived = [np.zeros_like(update) for update in updates]
        for key, slices in self._keys.items():
            whole = slice(slices[0].begin, slices[-1].begin + slices[-1].length)
            limits = [self._codec.scaler(update[whole]) for update in updates]
            scalers = [max(limits)] * len(limits) if self._codec.shares_scaler() else limits
            for rank, update in enumerate(updates):
                draws = _core.Draws(self._seed, rank, key, number)
                for each in slices:
                    place = slice(each.begin, each.begin + each.length)
                    mask = pushed[rank][place]
                    arrived[rank][place][mask] = self._received(
                        update[place][mask],
                        limits[rank],
                        scalers[rank],
                        draws.from_offset(each.offset),
                    )
        return arrived

    def _received(
        self, values: np.ndarray, limit: float, scaler: float, draws: _core.Draws
    ) -> np.ndarray:
        data = self._codec.encode_clipped(values, limit, scaler, draws)
        self.elements += values.size
        self.bytes += len(data)
        received = np.zeros(values.size, np.float32)
        self._codec.add_to(received, data)
        return received


def split(vector: np.ndarray, network: Network) -> List[np.ndarray]:
    """A model's parameters, in the order of their keys and of their shapes; parts of the vector."""
    shapes = [parameter.shape for parameter in network.parameters.values()]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes)]


class SlimSimulation:
    """What gluon.Trainer does on each of several workers with the store 'slim_dp'.

    Parameters
    ----------
    network
        Initialised; all workers' models pass through it.
    optimizer
        Every worker has a copy. The servers take the mean of the updates, so that its rescale_grad
        is one over the size of a worker's own batch.
    method
        Options; its values are compressed by the core's own codecs.
    servers, slice_bytes
        Of the job.
    store
        The number of the store in its process, from 0.
    model
        Makes the global model: of the method, the first parameters and the slices.
    """

    def __init__(
        self,
        network: gluon.Block,
        optimizer: mx.optimizer.Optimizer,
        workers: int,
        method: SlimDP,
        servers: int = 1,
        slice_bytes: int = Options().slice_bytes,
        store: int = 0,
        model: Callable[[SlimDP, np.ndarray, List[Slice]], GlobalModel] = GlobalModel,
    ) -> None:
        self.network = Network(network)
        self._method = method
        self._steps = 0
        values = self.network.values()
        keys = [identity(store, number) for number in self.network.parameters]
        sizes = {key: value.size for key, value in zip(keys, values)}
        initial = np.concatenate([value.reshape(-1) for value in values])
        optimizer.aggregate_num = len(values)  # updates all in one operation
        slices = cut(sizes, servers, slice_bytes)
        self._global = model(method, initial, slices)
        self.values_sent: Optional[Values] = None
        if method.values is not None:
            self.values_sent = Values(method.values, workers, slices)
        self._workers = [LocalModel(self.network, initial, optimizer) for _ in range(workers)]

    def step(self, batches: Sequence[Batch]) -> None:
        """One step, with each worker's images and labels, float32, in the order of ranks; and a
        round, where it is due."""
        self._steps += 1
        for worker, batch in zip(self._workers, batches):
            worker.train(batch)
        if self._steps % self._method.p == 0:
            self._round(self._steps // self._method.p)

    def _round(self, number: int) -> None:
        communicated = [
            self._global.communicated(rank, number) for rank in range(len(self._workers))
        ]
        full = number % self._method.q == 0
        pushed = [np.ones_like(mask) if full else mask for mask in communicated]
        updates = [worker.update() for worker in self._workers]
        if self.values_sent:
            updates = self.values_sent.travel(updates, pushed, number)
        total = np.zeros_like(self._global.parameters)
        for update, mask in zip(updates, pushed):
            total += update if full else np.where(mask, update, np.float32(0))
        self._global.add(total, sum(map(np.int32, pushed)), len(self._workers), number)
        for worker, mask in zip(self._workers, communicated):
            worker.merge(self._global.parameters, mask)

    def values(self) -> List[np.ndarray]:
        """Copies of the global parameters, in the order of their keys."""
        return split(self._global.parameters.copy(), self.network)

    def local_values(self, rank: int) -> List[np.ndarray]:
        """Copies of a worker's parameters."""
        return split(self._workers[rank].parameters.copy(), self.network)
