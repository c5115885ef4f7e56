"""Constants that were fitted, and the runs that they come from: these do not count."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from kvstore_ext.predict.cluster import REACHED
from kvstore_ext.predict.stores import MARK, UNLIKE


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


_LOOKED_AT = (
    ("resnet50", 1.0), ("resnet50", 4.0), ("inceptionv3", 2.0), ("sockeye", 1.0),
    ("sockeye", 4.0), ("vgg19", 5.0),
)  # fmt: skip

FITS = (
    Fit("REACHED", "of a link's rate, what TCP gets", REACHED, ("p3", "horovod"),
        (("resnet50", 1.0),)),
    Fit("UNLIKE", "deviation of the logarithms of the shares that TCP's connections get of a wire "
        "where no window bounds them", UNLIKE, ("dist_sync",), _LOOKED_AT),
    Fit("MARK", "messages of stock P3 on a connection that can no longer be overtaken", MARK,
        ("stock_p3",), _LOOKED_AT),
)  # fmt: skip


def was_fitted(arm: str, trace: str, hosts: int, gigabits: float) -> bool:
    """Whether a setting was looked at for a constant."""
    return hosts == 4 and any(arm in fit.arms and (trace, gigabits) in fit.settings for fit in FITS)
