"""What was measured of a setting, and what is predicted of it."""
from __future__ import annotations

from dataclasses import dataclass

from benchmarks.prediction.fitted import was_fitted
from benchmarks.prediction.settings import Measured


@dataclass(frozen=True)
class Compared:
    """A setting's runs beside its prediction, in seconds of an iteration."""

    measured: Measured
    predicted: float

    @property
    def difference(self) -> float:
        """Of the prediction from the median, as a share of that."""
        return self.predicted / self.measured.middle - 1

    @property
    def counts(self) -> bool:
        """Whether it was not looked at for a constant."""
        return not was_fitted(self.measured.setting)


def per_cent(share: float) -> str:
    """For a table, with its sign."""
    return f"{100 * share:+.1f} %"
