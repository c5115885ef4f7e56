"""How evenly servers share networks: what the fullest has of a network's bytes, beside the mean.

    python -m benchmarks.shares

Slices go to servers by their keys' numbers alone (csrc/keys/slicer.cc, predict/placement.py), so
that large keys are shared evenly, and of small ones a server may have more than others. Training
waits for the fullest.
"""
from __future__ import annotations

import argparse

from kvstore_ext.predict import placement

from benchmarks.replay.trace import load

NETWORKS = ("googlenet", "inceptionv3", "resnet50", "sockeye", "alexnet", "vgg16", "vgg19")
SERVERS = (2, 4, 8, 16)


def fullest(elements: list[int], servers: int) -> float:
    """What the fullest server has, times an even share; keys are numbered from 0."""
    held = [0] * servers
    for slices in placement.lane(elements, servers):
        for server, length in slices:
            held[server] += length
    return max(held) * servers / sum(elements)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(f"{'servers':12}" + "".join(f"{servers:8}" for servers in SERVERS))
    for network in NETWORKS:
        layers = load(network).layers
        elements = [count for layer in layers for count in layer.parameters.values()]
        print(f"{network:12}" + "".join(f"{fullest(elements, each):8.3f}" for each in SERVERS))


if __name__ == "__main__":
    main()
