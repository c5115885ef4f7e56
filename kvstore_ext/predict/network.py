"""A network as its communication sees it: its layers, their parameters and their time.

It stands alone: the benchmarks' processes load this file by its place, those of peers too, in which
nothing of kvstore_ext may run.
"""
from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Dict, List

# Bytes of an Ethernet frame, 1500 and its header, that `tc` counts, over those of TCP's payload in
# it, with timestamps: what a link of so many Gbit/s has to carry for each byte of a message.
FRAMES = 1514 / 1448

NETWORKS = Path(__file__).parent / "networks"


class NetworkError(Exception):
    """There is no such network, or nothing is known of its layers."""


@dataclass(frozen=True)
class Layer:
    """Consecutive operations of a network, the first of which has parameters.

    Parameters
    ----------
    parameters : dict of str to int
        Elements (float32) of the parameters by name; those first used here.
    forward, backward : float
        Seconds that a device takes for a batch.
    """

    parameters: Dict[str, int]
    forward: float
    backward: float

    @property
    def elements(self) -> int:
        """Of all parameters."""
        return sum(self.parameters.values())


@dataclass(frozen=True)
class Network:
    """A network's layers in the order of the forward pass, and where their numbers come from."""

    name: str
    batch: int  # samples a worker and iteration
    device: str
    source: str  # the command that made it
    layers: List[Layer]

    @property
    def elements(self) -> int:
        """Of all parameters."""
        return sum(layer.elements for layer in self.layers)

    @property
    def compute(self) -> float:
        """Seconds of an iteration without communication."""
        return sum(layer.forward + layer.backward for layer in self.layers)

    @property
    def trains(self) -> bool:
        """Whether there are parameters, and layers that take time."""
        return self.compute > 0 and self.elements > 0

    def scaled(self, factor: float) -> Network:
        """The same network on a device that takes `factor` times as long."""
        layers = [
            replace(layer, forward=layer.forward * factor, backward=layer.backward * factor)
            for layer in self.layers
        ]
        return replace(self, layers=layers)

    def save(self, file: Path) -> None:
        """Writes it as JSON, a line a layer."""
        head = {key: value for key, value in asdict(self).items() if key != "layers"}
        lines = ",\n".join("  " + json.dumps(asdict(layer)) for layer in self.layers)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'{json.dumps(head)[:-1]}, "layers": [\n{lines}\n]}}\n')


def load(name: str) -> Network:
    """One of those in `networks/`, or one of a file .json.

    Parameters
    ----------
    name : str
        A network's name, or the path of a file that `save` has written.

    Raises
    ------
    NetworkError
        Where there is none, or the file has something else.
    """
    content = _content(name)
    try:
        return _network(content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NetworkError(f"{name} has no network as `save` writes one: {error!r}") from error


def digest(name: str) -> str:
    """Tells a network from others, whatever their names; raises as `load` does."""
    return hashlib.sha256(_content(name)).hexdigest()[:16]


# By what a file has: one that was changed may have the time and the size that it had.
@lru_cache(maxsize=64)
def _network(content: bytes) -> Network:
    values = json.loads(content)
    network = Network(**{**values, "layers": [Layer(**layer) for layer in values["layers"]]})
    if not network.trains:
        raise ValueError("its layers have no parameters, or take no time")
    return network


def _content(name: str) -> bytes:
    file = Path(name) if name.endswith(".json") else NETWORKS / f"{name}.json"
    if not file.is_file():
        if name.endswith(".json"):
            raise NetworkError(f"there is no file {name!r}")
        known = ", ".join(names())
        raise NetworkError(f"there is no network {name!r}; there are {known}, or name a file .json")
    return file.read_bytes()


def names() -> List[str]:
    """Those of the networks in `networks/`."""
    return sorted(file.stem for file in NETWORKS.glob("*.json"))
