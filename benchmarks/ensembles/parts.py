"""Examples in three parts."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

import numpy as np

Pair = Tuple[np.ndarray, np.ndarray]  # inputs (n, features) float32 and labels (n,) int64


@dataclass(frozen=True)
class Parts:
    """What is trained on, what numbers are chosen by, and what errors are told of."""

    train: Pair
    validation: Pair
    test: Pair

    def centred(self) -> Parts:
        """The same with the mean of what is trained on subtracted, as in the paper."""
        mean = self.train[0].mean(axis=0)
        pairs = (self.train, self.validation, self.test)
        return Parts(*((inputs - mean, labels) for inputs, labels in pairs))
