"""Constants that were fitted, and the runs that they come from: these do not count."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from kvstore_ext.predict.speeds import Speeds
from kvstore_ext.predict.stores import REACHED

from benchmarks.prediction.settings import Setting


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
    slice_elements : int
        Of a slice at most; 0 for the store's default.
    """

    constant: str
    meaning: str
    value: float
    arms: Tuple[str, ...]
    settings: Tuple[Tuple[str, float], ...]
    slice_elements: int = 0

    def looked_at(self, own: Setting) -> bool:
        """Whether a setting's runs were looked at for it."""
        return (
            own.hosts == 4
            and own.slice_elements == self.slice_elements
            and own.arm in self.arms
            and (own.trace, own.gigabits) in self.settings
        )


FITS = (
    Fit("REACHED", "of a link's rate, what rings get", REACHED, ("horovod",),
        (("resnet50", 1.0),)),
    Fit("small_message", "seconds of a small message that leaves together with others",
        Speeds.small_message, ("p3",), (("resnet50", 4.0),), 1000),
)


def was_fitted(setting: Setting) -> bool:
    """Whether a setting was looked at for a constant."""
    return any(fit.looked_at(setting) for fit in FITS)
