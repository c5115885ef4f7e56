"""The traces of the papers' networks; `python -m benchmarks.replay traces` writes them.

Layers and sizes are those of `gluon_models/`, costs those of `costs.py` on the P3 paper's card.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Callable, Dict, Iterator

from gluon_models import get_model
from gluon_models.sockeye import Sockeye, configuration
from mxnet.gluon import HybridBlock

from benchmarks.replay.costs import P4000, Shape, layers_of
from benchmarks.replay.trace import Trace

SOURCE = "python -m benchmarks.replay traces"


BATCH = 32  # samples a worker; the P3 paper does not say


@dataclass(frozen=True)
class Network:
    """A network of `gluon_models/` and the shapes of its inputs."""

    make: Callable[[], HybridBlock]
    inputs: Dict[str, Shape]


def _images(model: str, size: int = 224) -> Network:
    """A network for images of the size that its own paper has."""
    return Network(partial(get_model, model), {"data": (BATCH, 3, size, size)})


# With the vocabularies of IWSLT15, English and Vietnamese, as in the P3 paper, and sentences of 30
# words. What launching its many small operations costs on a GPU is not counted: it is slower there.
_WORDS = 30
NETWORKS: Dict[str, Network] = {
    "resnet50": _images("resnet50_v1"),
    "inceptionv3": _images("inceptionv3", 299),
    "vgg16": _images("vgg16"),
    "vgg19": _images("vgg19"),
    "googlenet": _images("googlenet"),
    "alexnet": _images("alexnet"),
    "sockeye": Network(
        partial(Sockeye, 17191, 7710, configuration("p3")),
        {"source": (BATCH, _WORDS), "lengths": (BATCH,), "target": (BATCH, _WORDS)},
    ),
}


def traces() -> Iterator[Trace]:
    """All of them."""
    for name, network in NETWORKS.items():
        layers = layers_of(network.make(), network.inputs, P4000)
        yield Trace(name, BATCH, P4000.name, SOURCE, layers)
