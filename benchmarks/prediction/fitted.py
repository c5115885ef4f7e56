"""Constants that were fitted, and the runs that they come from: these do not count."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from kvstore_ext.predict.stores import REACHED


@dataclass(frozen=True)
class Fit:
    """A constant, and the settings whose runs were looked at for it, all with 4 hosts.

    Parameters
    ----------
    constant, meaning : str
    value : float
    arms : tuple of str
    settings : tuple of (str, float)
        Networks, and Gbit/s.
    """

    constant: str
    meaning: str
    value: float
    arms: Tuple[str, ...]
    settings: Tuple[Tuple[str, float], ...]


FITS = (
    Fit("REACHED", "of a link's rate, what the lane and rings get", REACHED, ("p3", "horovod"),
        (("resnet50", 1.0),)),
)


def was_fitted(arm: str, trace: str, hosts: int, gigabits: float) -> bool:
    """Whether a setting was looked at for a constant."""
    return hosts == 4 and any(arm in fit.arms and (trace, gigabits) in fit.settings for fit in FITS)
