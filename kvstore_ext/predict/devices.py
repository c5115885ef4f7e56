"""Devices that a network's times can be scaled to."""
from __future__ import annotations

from typing import Dict, Tuple

from .network import Network, NetworkError

# Arithmetic in float32 and memory, in operations and bytes a second, by the makers' data sheets.
# The networks' own times are those of the first.
DEVICES: Dict[str, Tuple[float, float]] = {
    "p4000": (5.3e12, 243e9),
    "m60": (4.8e12, 160e9),
    "t4": (8.1e12, 320e9),
    "p100": (9.3e12, 732e9),
    "v100": (15.7e12, 900e9),
    "a100": (19.5e12, 1555e9),
}


def on(network: Network, device: str) -> Network:
    """A network on another device: as much faster as that gains least, in arithmetic or memory.

    Parameters
    ----------
    network : Network
        With times of the first of DEVICES, unless `device` says how long an iteration takes.
    device : str
        One of DEVICES, or the seconds that an iteration takes without communication.

    Raises
    ------
    NetworkError
        For another word, or a number of seconds that is not more than 0.
    """
    try:
        seconds = float(device)
    except ValueError:
        seconds = 0.0
    if 0 < seconds < float("inf"):
        return network.scaled(seconds / network.compute)
    if device not in DEVICES:
        raise NetworkError(
            f"there is no device {device!r}; there are {', '.join(DEVICES)}, or give the seconds "
            f"that an iteration takes without communication"
        )
    gains = [new / old for new, old in zip(DEVICES[device], DEVICES["p4000"])]
    return network.scaled(1 / min(gains))
