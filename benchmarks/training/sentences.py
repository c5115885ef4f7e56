"""Sentences to translate: what a worker does with them."""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Dict, Iterator, List

import mxnet as mx
from gluon_models.sockeye import Sockeye, configuration

from benchmarks.training import examples  # noqa: F401 - before what is in examples/

import translation  # isort: skip
from parallel_text import Batches, Vocabulary  # isort: skip

_BUCKET = 10  # words
_SEARCH = argparse.Namespace(beam=1, length_alpha=1.0, length_beta=0.0, max_length=40)


class Sentences:
    """A worker's network and sentences.

    Parameters
    ----------
    how : dict
        Settings; `data` is what the job's process has prepared.
    """

    def __init__(self, how: Dict[str, Any]) -> None:
        self._recipe = how["recipe"]
        text = json.loads(Path(how["data"]).read_text())
        self._words = [Vocabulary(words) for words in text["words"]]
        self._held_out = text["held_out"]
        self._batches = Batches(text["training"], _BUCKET, self._recipe["batch"], how["seed"])
        self.steps = self._batches.steps

    def make_network(self) -> mx.gluon.HybridBlock:
        """With weights of MXNet's random numbers."""
        shape = configuration(self._recipe["model"])
        self.network = Sockeye(*map(len, self._words), shape)
        self.network.initialize(mx.init.Xavier())
        self.network.hybridize()
        self._translator = translation.Translator(self.network, self._words, _SEARCH, mx.cpu())
        return self.network

    def train(self, epoch: int, rank: int, workers: int) -> Iterator[Any]:
        """An epoch's batches of a worker."""
        return self._batches.of_worker(epoch, rank, workers)

    def loss(self, batch: Any) -> mx.nd.NDArray:
        """Of each sentence, a sum over its words."""
        part, = translation.split(batch, [mx.cpu()])
        return translation.loss(self.network, part)

    def evaluate(self, rank: int, workers: int) -> List[str]:
        """The translations of a worker's share of the sentences to test."""
        return self._translator.translate(self._held_out[rank::workers])
