"""How much of a figure is measured."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence, TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Extent:
    """How often a run is repeated, and how many iterations it has.

    Parameters
    ----------
    repeats : int
    warm_up, iterations : int
        That do not count, and that do.
    points : int
        Of each curve, the first ones; 0 is all of them.
    """

    repeats: int
    warm_up: int
    iterations: int
    points: int = 0

    def some(self, values: Sequence[_Value]) -> Sequence[_Value]:
        """Those of all values that are measured."""
        return values[: self.points or None]


FULL = Extent(repeats=3, warm_up=2, iterations=3)
# As a job trains for hours: p3's third iteration still takes up to a tenth longer than later ones,
# while TCP's new connections grow.
SETTLED = Extent(repeats=3, warm_up=4, iterations=5)
# That everything works: what it finds is no figure.
QUICK = Extent(repeats=1, warm_up=1, iterations=1, points=2)
