"""A network that computes gradients for all workers, and what they train on."""
from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

Batch = Tuple[np.ndarray, np.ndarray]  # images and labels, float32


class Network:
    """Computes gradients for all workers, one after the other.

    Parameters
    ----------
    network
        Initialised. Parameters have the numbers by which gluon.Trainer calls their keys; those
        without gradients are nobody's matter here.
    """

    def __init__(self, network: gluon.Block) -> None:
        self._block = network
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self._loss.hybridize(static_alloc=True, static_shape=True)
        everything = sorted(network.collect_params().items())
        self.parameters: Dict[int, gluon.Parameter] = {
            number: parameter
            for number, (_, parameter) in enumerate(everything)
            if parameter.grad_req != "null"
        }

    def backward(self, batch: Batch) -> None:
        """Computes the parameters' gradients, summed over the batch."""
        images, labels = map(mx.nd.from_numpy, batch)
        with autograd.record():
            loss = self._loss(self._block(images), labels)
        loss.backward()

    def values(self) -> List[np.ndarray]:
        """Copies of the parameters, in the order of their keys."""
        return [parameter.data().asnumpy() for parameter in self.parameters.values()]

    def set_values(self, values: Sequence[np.ndarray]) -> None:
        """Gives the network other parameters, in the order of their keys."""
        for parameter, value in zip(self.parameters.values(), values):
            parameter.set_data(mx.nd.array(value))
