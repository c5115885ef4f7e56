"""Which method trains, and its numbers."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import OptionError
from ..whole_numbers import whole_number

# With the equations by which they aggregate.
METHODS = {
    "s_dnn": "one worker alone",
    "ma_dnn": "average of parameters (1)",
    "e_dnn": "independent workers; their ensemble at the end (5)",
    "ec_dnn_s": "simple ensemble (5), then compression",
    "ec_dnn_r": "ensemble by regression (6, 7), then compression",
    "ec_dnn_m": "ensemble by margins (6, 8), then compression",
}


@dataclass(frozen=True)
class Method:
    """A method of the paper; defaults are the numbers of its table 1 for CIFAR. There p is of the
    whole training, as here with training_steps, which studies of this project have given.

    Parameters
    ----------
    name
        One of METHODS.
    tau
        Local steps, that is mini-batches, between two aggregations: 1 or more.
    p
        Length of the compression after each aggregation, in per cent of tau mini-batches or of
        training_steps, rounded up: above 0, to 100. These mini-batches come on top of the tau local
        ones.
    mu
        Portion of a worker's examples that the ensemble relabels at an aggregation: above 0, to 1.
    alpha
        Weight of the distance from the compressed models' average (equation 9): 0 or more. With 0
        a round exchanges one model a worker instead of two.
    beta
        Weight of the pseudo-labels in compression (equation 10): 0 or more.
    training_steps
        Mini-batches of a worker's whole training, 1 or more: p is in per cent of these, as in
        section 6.1. Compression follows every aggregation (algorithm 1), so that 100/p rounds fill
        the training with it. None: p is in per cent of tau.
    wire
        "float16" halves what models take on their way; None sends them as they are. Every worker
        then sees others' models rounded, numbers beyond +-65,504 to these, its own not. Not for
        ma_dnn, which would round parameters again and again.

    Raises
    ------
    OptionError
        For another name, or a number out of range.
    """

    name: str
    tau: int
    p: float = 10.0
    mu: float = 0.7
    alpha: float = 0.6
    beta: float = 0.4
    training_steps: Optional[int] = None
    wire: Optional[str] = None

    def __post_init__(self) -> None:
        self._check("name", self.name in METHODS, f"one of {', '.join(METHODS)}")
        self._count("tau")
        self._check("p", _is_number(self.p) and 0 < self.p <= 100, "per cent, above 0 to 100")
        self._check("mu", _is_number(self.mu) and 0 < self.mu <= 1, "a portion, above 0 to 1")
        for weight in ("alpha", "beta"):
            value = getattr(self, weight)
            self._check(weight, _is_number(value) and value >= 0, "a number, 0 or more")
        if self.training_steps is not None:
            self._count("training_steps", ", or None")
        self._check("wire", self.wire in (None, "float16"), "None or 'float16'")
        if self.name == "ma_dnn":
            self._check("wire", self.wire is None, "None for ma_dnn, which averages parameters")

    def _count(self, field: str, otherwise: str = "") -> None:
        count = whole_number(f"ec_dnn: {field}", getattr(self, field), 1, otherwise)
        object.__setattr__(self, field, count)  # which a frozen dataclass has no other way for

    def _check(self, field: str, holds: bool, allowed: str) -> None:
        if not holds:
            raise OptionError(f"ec_dnn: {field} is {getattr(self, field)!r}; it must be {allowed}")

    @property
    def compresses(self) -> bool:
        """Whether ensembles are compressed into local models."""
        return self.name.startswith("ec_dnn")

    @property
    def is_ensemble(self) -> bool:
        """Whether the global model is an ensemble."""
        return self.compresses or self.name == "e_dnn"

    @property
    def compression_steps(self) -> int:
        """Mini-batches of compression in a round."""
        if not self.compresses:
            return 0
        return max(1, math.ceil((self.training_steps or self.tau) * self.p / 100 - 1e-9))


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)
