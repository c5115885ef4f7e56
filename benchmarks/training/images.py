"""Images to classify: what a worker does with them."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List

import mxnet as mx
import numpy as np
from gluon_models import get_model

from benchmarks import datasets

_TOGETHER = 256  # images that are tested at once


class Images:
    """A worker's network and examples.

    Parameters
    ----------
    how : dict
        Settings; `data` is what the job's process has prepared.
    """

    def __init__(self, how: Dict[str, Any]) -> None:
        self._recipe = how["recipe"]
        if self._recipe["task"] == "cifar10":
            self.data = datasets.cifar10(self._recipe["data_dir"], how["seed"])
        else:
            with np.load(how["data"]) as file:
                arrays = tuple(file[name] for name in file.files)
            self.data = datasets.digits_of(arrays, how["seed"])
        self.steps = self.data.steps(self._recipe["batch"])
        self._loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()

    def make_network(self) -> mx.gluon.HybridBlock:
        """With weights of MXNet's random numbers."""
        self.network = get_model(self._recipe["model"], classes=self.data.classes)
        self.network.infer_shape(mx.nd.zeros((1, *self.data.image_shape)))
        self.network.initialize(mx.init.Xavier())
        self.network.hybridize()
        return self.network

    def train(self, epoch: int, rank: int, workers: int) -> Iterator[Any]:
        """An epoch's batches of a worker."""
        return self.data.train(epoch, self._recipe["batch"], rank, workers)

    def loss(self, batch: Any) -> mx.nd.NDArray:
        """Of each image."""
        images, labels = batch
        return self._loss(self.network(mx.nd.array(images)), mx.nd.array(labels))

    def evaluate(self, rank: int, workers: int) -> List[int]:
        """How many images of a worker's share of those to test are recognised, and of how many."""
        images, labels = (np.concatenate(parts)[rank::workers]
                          for parts in zip(*self.data.validation(_TOGETHER)))
        right = 0
        for first in range(0, len(images), _TOGETHER):
            several = slice(first, first + _TOGETHER)
            found = self.network(mx.nd.array(images[several])).asnumpy().argmax(axis=1)
            right += int((found == labels[several]).sum())
        return [right, len(images)]
