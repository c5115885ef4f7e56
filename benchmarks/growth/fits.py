"""Lines through what was measured with few hosts, and where they lead with many."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import numpy as np


@dataclass(frozen=True)
class Fit:
    """base + slope * hosts; `off` is the most by which a measurement is off it, as a share."""

    base: float
    slope: float
    off: float

    def at(self, hosts: float) -> float:
        """Its value."""
        return self.base + self.slope * hosts


def line(hosts: Sequence[float], values: Sequence[float]) -> Fit:
    """The line of least squares of errors relative to the values.

    So that few hosts count as much as many.
    """
    x, y = np.array(hosts, float), np.array(values, float)
    weights = 1 / np.maximum(np.abs(y), 1e-9)
    columns = np.stack([weights, weights * x], axis=1)
    (base, slope), *_ = np.linalg.lstsq(columns, weights * y, rcond=None)
    off = np.max(np.abs(base + slope * x - y) * weights)
    return Fit(float(base), float(slope), float(off))
