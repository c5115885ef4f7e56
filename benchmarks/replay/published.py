"""The traces of the papers' networks; `python -m benchmarks.replay traces` writes them.

Layers and sizes are those of `gluon_models/`, costs those of `costs.py` on the P3 paper's card.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator

from gluon_models import get_model

from benchmarks.replay.costs import P4000, Shape, layers_of
from benchmarks.replay.trace import Trace

SOURCE = "python -m benchmarks.replay traces"


@dataclass(frozen=True)
class Network:
    """A network of `gluon_models/` and the shape of an image; the P3 paper's batch is not said."""

    model: str
    image: Shape
    batch: int = 32


# Image sizes are those of the networks' own papers.
NETWORKS: Dict[str, Network] = {
    "resnet50": Network("resnet50_v1", (3, 224, 224)),
    "inceptionv3": Network("inceptionv3", (3, 299, 299)),
    "vgg16": Network("vgg16", (3, 224, 224)),
    "vgg19": Network("vgg19", (3, 224, 224)),
    "googlenet": Network("googlenet", (3, 224, 224)),
    "alexnet": Network("alexnet", (3, 224, 224)),
}


def traces() -> Iterator[Trace]:
    """All of them."""
    for name, network in NETWORKS.items():
        inputs = {"data": (network.batch, *network.image)}
        layers = layers_of(get_model(network.model), inputs, P4000)
        yield Trace(name, network.batch, P4000.name, SOURCE, layers)
