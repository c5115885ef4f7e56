"""Workers that exchange gradients, as they are or compressed.

A step computes each worker's gradients from its part of the batch, one worker after the other with
one network, since all have the same parameters. Then each key goes through a round: the core's own
codecs make of its gradients what the workers would send, add that as a server would, and make of
the sum what travels back (kvstore_ext/csrc/keys/gradient_codec.cc and server/coded_sum.cc). The
optimizer is applied to it as on every worker. Keys are not cut into slices, for no value depends on
it.
"""
from __future__ import annotations

import math
from typing import Collection, List, Optional, Sequence, Tuple, Type, Union

import mxnet as mx
import numpy as np
from kvstore_ext import _core
from kvstore_ext.compression import Compression
from kvstore_ext.compression.momentum import take_momentum
from kvstore_ext.keys.names import identity
from mxnet import gluon

from .network import Batch, Network

SERVER = 0xFFFFFFFF  # as a sender of random numbers (kvstore_ext/csrc/support/random.h)

class FloatRounds:
    """One key that travels as it is."""

    def sum(self, gradients: Sequence[np.ndarray], number: int) -> np.ndarray:
        """As CompressedRounds'."""
        del number
        total = gradients[0].copy()
        for gradient in gradients[1:]:
            total += gradient
        return total


class CompressedRounds:
    """One key at all workers and at its server, with what they carry over from round to round.

    Parameters
    ----------
    key
        The number by which the key travels, on which its random numbers depend.
    momentum
        Of the optimizer, where the method applies it in its stead.
    """

    def __init__(
        self,
        method: Compression,
        workers: int,
        key: int,
        shape: Tuple[int, ...],
        momentum: float = 0.0,
    ) -> None:
        self._key, self._shape = key, shape
        self._elements = int(np.prod(shape))
        self._seed = getattr(method, "seed", 0)
        specification = method.specification(shape)
        self._codec = _core.Codec(specification, workers)
        self._encoders = [
            _core.KeyEncoder(specification, workers, self._elements) for _ in range(workers)
        ]
        for encoder in self._encoders:
            encoder.set_momentum(momentum)
        self._carried = np.zeros(self._elements, np.float32)  # at the server

    def sum(self, gradients: Sequence[np.ndarray], number: int) -> np.ndarray:
        """What every worker gets back in a round of gradients, one a worker; the first round is 1.

        All are float32, of the key's shape.

        Raises
        ------
        FloatingPointError
            For a gradient with NaN or infinity.
        """
        flat = [gradient.reshape(-1) for gradient in gradients]
        scalers = [
            encoder.prepare(gradient, number) for encoder, gradient in zip(self._encoders, flat)
        ]
        if any(map(math.isnan, scalers)):
            raise FloatingPointError(f"key {self._key}: NaN or infinity in round {number}")
        largest = max(scalers)
        total = np.zeros(self._elements, np.float32)
        for rank, encoder in enumerate(self._encoders):
            scaler = largest if self._codec.shares_scaler() else scalers[rank]
            draws = _core.Draws(self._seed, rank, self._key, number)
            data = encoder.encode(0, self._elements, scaler, draws)
            self._codec.add_to(total, data)
            self.sent(flat[rank], scalers[rank], data)
        return self._travel_back(total, largest, number).reshape(self._shape)

    def sent(self, gradient: np.ndarray, scaler: float, data: bytes) -> None:
        """Hears of what a worker sends: its gradient, its own scaler, and what is made of it. For
        those who look at it."""

    def _travel_back(self, total: np.ndarray, scaler: float, number: int) -> np.ndarray:
        if self._codec.error_feedback():
            total += self._carried
        draws = _core.Draws(self._seed, SERVER, self._key, number)
        data = self._codec.encode_sum(total, scaler, draws)
        if data is None:
            return total
        received = self._codec.decode_sum(self._elements, data)
        if self._codec.error_feedback():
            self._carried = total - received
        return received


class Simulation:
    """What gluon.Trainer does on each of several workers, with an optimizer on the workers.

    Parameters
    ----------
    network
        Initialised; it is trained. Its keys are numbered as Trainer numbers them.
    optimizer
        Its rescale_grad is one over the size of the batch of all workers. Where the method applies
        SGD's momentum, it takes it over.
    method
        How gradients and their sums travel; None for as they are.
    store
        The number of the store in its process, from 0, on which random numbers depend.
    rounds
        Makes a key's rounds: of a method, workers, a key's number, its shape and a momentum.
    together
        Have all parameters be one key, whose elements stand one parameter after the other.
    excluded
        Parameters that travel as they are, where they are keys.
    """

    def __init__(
        self,
        network: gluon.Block,
        optimizer: mx.optimizer.Optimizer,
        workers: int,
        method: Optional[Compression] = None,
        store: int = 0,
        rounds: Type[CompressedRounds] = CompressedRounds,
        together: bool = False,
        excluded: Collection[gluon.Parameter] = (),
    ) -> None:
        self.network = Network(network)
        momentum = 0.0
        if method is not None and method.applies_momentum:
            momentum = take_momentum(optimizer, method.name)
        parameters = self.network.parameters
        if optimizer.aggregate_num:  # it can update several parameters in one operation
            optimizer.aggregate_num = len(parameters)
        self._updater = mx.optimizer.get_updater(optimizer)
        shapes = {number: parameter.shape for number, parameter in parameters.items()}
        self._splits = np.cumsum([np.prod(shape) for shape in shapes.values()])[:-1]
        self._together = together
        if together:
            shapes = {0: (sum(int(np.prod(shape)) for shape in shapes.values()),)}
        self.keys: List[Union[FloatRounds, CompressedRounds]] = [
            rounds(method, workers, identity(store, number), shape, momentum)
            if method and parameters[number] not in excluded
            else FloatRounds()
            for number, shape in shapes.items()
        ]
        self._rounds = 0

    def step(self, batches: Sequence[Batch]) -> None:
        """One step, with each worker's images and labels, float32, in the order of ranks."""
        self._rounds += 1
        gradients = [self._gradients(batch) for batch in batches]
        if self._together:
            gradients = [[np.concatenate([part.ravel() for part in own])] for own in gradients]
        totals = [key.sum(found, self._rounds) for key, found in zip(self.keys, zip(*gradients))]
        if self._together:
            totals = np.split(totals[0], self._splits)
        parameters = self.network.parameters
        self._updater(
            list(parameters),
            [
                mx.nd.from_numpy(total.reshape(parameter.shape))
                for total, parameter in zip(totals, parameters.values())
            ],
            [parameter.data() for parameter in parameters.values()],
        )

    def _gradients(self, batch: Batch) -> List[np.ndarray]:
        self.network.backward(batch)
        return [parameter.grad().asnumpy() for parameter in self.network.parameters.values()]

    def values(self) -> List[np.ndarray]:
        """Copies of the parameters, in the order of their keys."""
        return self.network.values()
