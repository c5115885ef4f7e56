"""Devices that a network's times can be scaled to."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, Tuple

from .network import Network, NetworkError

# Arithmetic in float32 and memory, in operations and bytes a second, by the makers' data sheets.
# The papers' networks have times of the first.
DEVICES: Dict[str, Tuple[float, float]] = {
    "p4000": (5.3e12, 243e9),
    "m60": (4.8e12, 160e9),
    "t4": (8.1e12, 320e9),
    "p100": (9.3e12, 732e9),
    "v100": (15.7e12, 900e9),
    "a100": (19.5e12, 1555e9),
}
_FIRST = "p4000"


def check_scales(device: str, name: str, timed: str) -> None:
    """Raises NetworkError unless the times of a network can be those of a device.

    Parameters
    ----------
    device : str
        As `on` takes it.
    name, timed : str
        The network's, and of which device its times are.
    """
    if _seconds(device):
        return
    if device not in DEVICES:
        raise NetworkError(
            f"there is no device {device!r}; there are {', '.join(DEVICES)}, or give the seconds "
            f"that an iteration takes without communication"
        )
    known = f"Quadro {_FIRST.upper()}"
    if not timed.startswith(known):
        raise NetworkError(
            f"--device {device} scales times of a {known}, which the papers' networks have; those "
            f"of {name} are of {timed}: give the seconds that an iteration takes without "
            "communication"
        )


def on(network: Network, device: str) -> Network:
    """A network on another device: as much faster as that gains least, in arithmetic or memory.

    Parameters
    ----------
    network : Network
        With times of the first of DEVICES, unless `device` says how long an iteration takes: of
        another device, such as the host of a traced job, nobody knows how fast it is.
    device : str
        One of DEVICES, or the seconds that an iteration takes without communication.

    Raises
    ------
    NetworkError
        For another word, a number of seconds that is not more than 0, or the name of a device
        where the network's times are of an unknown one.
    """
    check_scales(device, network.name, network.device)
    seconds = _seconds(device)
    if seconds:
        described = f"{network.device}, as if an iteration took {seconds:g} s"
        return replace(network.scaled(seconds / network.compute), device=described)
    gains = [new / old for new, old in zip(DEVICES[device], DEVICES[_FIRST])]
    arithmetic, memory = DEVICES[device]
    described = f"{device}, by its {arithmetic / 1e12:g} TFLOP/s and {memory / 1e9:g} GB/s"
    return replace(network.scaled(1 / min(gains)), device=described)


def _seconds(device: str) -> float:
    """0 where it says none."""
    try:
        seconds = float(device)
    except ValueError:
        return 0.0
    return seconds if 0 < seconds < float("inf") else 0.0
