"""The methods as a whole in NumPy, put together from formulas.py and packing.py.

A method reduces values to what travels and gives the values that this stands for; `packed` has the
same as bytes.
"""
from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tests.support.reference import formulas, packing


@dataclasses.dataclass(frozen=True)
class Method:
    """What all methods have in common; the base is of those that do not scale."""

    @property
    def specification(self) -> str:
        """For the core (csrc/codecs/method_options.h)."""
        raise NotImplementedError

    @property
    def alignment(self) -> int:
        """Slices begin at multiples of so many elements."""
        return 1

    @property
    def shares_scaler(self) -> bool:
        """Whether all workers encode with the largest of their scalers."""
        return False

    @property
    def carries_over(self) -> bool:
        """Whether what an encoding leaves out is added to the next round's values."""
        return bool(getattr(self, "feedback", False))

    def scaler(self, values: np.ndarray) -> np.float32:
        """A key's, from all its values."""
        return np.float32(0 if np.isfinite(values).all() else np.nan)

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> Any:
        """What travels of them: digits, levels, codes."""
        raise NotImplementedError

    def expand(self, reduced: Any) -> np.ndarray:
        """The values that it stands for."""
        raise NotImplementedError

    def pack(self, reduced: Any) -> bytes:
        """It as bytes."""
        raise NotImplementedError

    def reduce_sum(
        self, total: np.ndarray, scaler: np.float32, draws: np.ndarray, workers: int
    ) -> Any:
        """What travels back of a sum; None where it travels as it is."""
        return self.reduce(total, scaler, draws)

    def pack_sum(self, reduced: Any, workers: int) -> bytes:
        """It as bytes."""
        return self.pack(reduced)


class Scaled(NamedTuple):
    """Whole numbers, of which one is worth the scaler."""

    scaler: np.float32
    digits: np.ndarray


@dataclasses.dataclass(frozen=True)
class TernGrad(Method):
    clip_sigma: float = 2.5
    sharing: bool = True
    seed: int = 0

    @property
    def specification(self) -> str:
        return (
            f"terngrad clip_sigma={self.clip_sigma} scaler_sharing={self.sharing:d} "
            f"seed={self.seed}"
        )

    @property
    def shares_scaler(self) -> bool:
        return self.sharing

    def scaler(self, values: np.ndarray) -> np.float32:
        return formulas.terngrad_scaler(values, self.clip_sigma)

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> Scaled:
        clipped = formulas.clip(values, scaler)
        return Scaled(scaler, formulas.ternarize(clipped, scaler, draws))

    def expand(self, reduced: Scaled) -> np.ndarray:
        with np.errstate(over="ignore"):
            return reduced.scaler * reduced.digits.astype(np.float32)

    def pack(self, reduced: Scaled) -> bytes:
        return packing.pack_ternary(*reduced)

    def reduce_sum(
        self, total: np.ndarray, scaler: np.float32, draws: np.ndarray, workers: int
    ) -> Scaled | None:
        if not self.sharing:
            return None
        return Scaled(scaler, formulas.sum_of_digits(total, scaler, workers))

    def pack_sum(self, reduced: Scaled, workers: int) -> bytes:
        return packing.pack_sum(*reduced, workers)


class Levels(NamedTuple):
    """Each bucket's norm, and whole numbers."""

    norms: np.ndarray
    levels: np.ndarray


@dataclasses.dataclass(frozen=True)
class QSGD(Method):
    bits: int = 8
    bucket: int = 512
    euclidean: bool = True
    seed: int = 0
    feedback: bool = False

    @property
    def specification(self) -> str:
        norm = "l2" if self.euclidean else "max"
        return (
            f"qsgd bits={self.bits} bucket={self.bucket} norm={norm} seed={self.seed} "
            f"error_feedback={self.feedback:d}"
        )

    @property
    def alignment(self) -> int:
        return self.bucket

    @property
    def most(self) -> int:
        """The largest level, s."""
        return int(2 ** (self.bits - 1) - 1)

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> Levels:
        norms = formulas.bucket_norms(values, self.bucket, self.euclidean)
        return Levels(norms, formulas.quantize(values, norms, self.bucket, self.most, draws))

    def expand(self, reduced: Levels) -> np.ndarray:
        return formulas.dequantize(reduced.levels, reduced.norms, self.bucket, self.most)

    def pack(self, reduced: Levels) -> bytes:
        codes = reduced.levels + self.most
        return packing.floats(reduced.norms) + packing.pack_bits(codes, self.bits)


class Signs(NamedTuple):
    """Which elements are not negative, and each bucket's values of those and of the others."""

    positive: np.ndarray
    above: np.ndarray
    below: np.ndarray


@dataclasses.dataclass(frozen=True)
class OneBit(Method):
    bucket: int = 512
    feedback: bool = True

    @property
    def specification(self) -> str:
        return f"onebit bucket={self.bucket} error_feedback={self.feedback:d}"

    @property
    def alignment(self) -> int:
        return self.bucket

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> Signs:
        positive = values >= 0
        above = formulas.bucket_means(values, self.bucket, positive)
        return Signs(positive, above, formulas.bucket_means(values, self.bucket, ~positive))

    def expand(self, reduced: Signs) -> np.ndarray:
        return formulas.reconstruct(*reduced, self.bucket)

    def pack(self, reduced: Signs) -> bytes:
        bits = packing.pack_bits(reduced.positive, 1)
        return packing.floats(reduced.above) + packing.floats(reduced.below) + bits


class Votes(NamedTuple):
    """Which elements are positive, and what a sign is worth."""

    positive: np.ndarray
    worth: float


@dataclasses.dataclass(frozen=True)
class SignSGD(Method):
    scale: float = 1.0
    seed: int = 0

    @property
    def specification(self) -> str:
        return f"signsgd scale={self.scale} seed={self.seed}"

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> Votes:
        return Votes(formulas.signs(values, draws), 1.0)

    def expand(self, reduced: Votes) -> np.ndarray:
        return np.where(reduced.positive, reduced.worth, -reduced.worth).astype(np.float32)

    def pack(self, reduced: Votes) -> bytes:
        return packing.pack_bits(reduced.positive, 1)

    def reduce_sum(
        self, total: np.ndarray, scaler: np.float32, draws: np.ndarray, workers: int
    ) -> Votes:
        return Votes(formulas.signs(total, draws), self.scale)


@dataclasses.dataclass(frozen=True)
class Half(Method):
    feedback: bool = False

    @property
    def specification(self) -> str:
        return f"fp16 error_feedback={self.feedback:d}"

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> np.ndarray:
        return formulas.halve(values)

    def expand(self, reduced: np.ndarray) -> np.ndarray:
        return reduced.astype(np.float32)

    def pack(self, reduced: np.ndarray) -> bytes:
        return reduced.astype("<f2").tobytes()


@dataclasses.dataclass(frozen=True)
class TwoBit(Method):
    threshold: float = 0.5
    feedback = True

    @property
    def specification(self) -> str:
        return f"2bit threshold={self.threshold}"

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> np.ndarray:
        return formulas.threshold_codes(values, np.float32(self.threshold))

    def expand(self, reduced: np.ndarray) -> np.ndarray:
        return np.array([0, self.threshold, -self.threshold], np.float32)[reduced]

    def pack(self, reduced: np.ndarray) -> bytes:
        return packing.pack_bits(reduced, 2)

    def reduce_sum(
        self, total: np.ndarray, scaler: np.float32, draws: np.ndarray, workers: int
    ) -> None:
        return None


class Chosen(NamedTuple):
    """Values, and the indices of those that are sent."""

    values: np.ndarray
    indices: np.ndarray


@dataclasses.dataclass(frozen=True)
class DGC(Method):
    final_ratio: float = 0.001
    warmup: int = 0
    stages: int = 4
    clip: float = 0.0
    masking: bool = False

    @property
    def specification(self) -> str:
        return (
            f"dgc ratio={self.final_ratio} warmup_rounds={self.warmup} "
            f"warmup_stages={self.stages} clip_norm={self.clip} "
            f"momentum_masking={int(self.masking)}"
        )

    def reduce(self, values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> Chosen:
        return Chosen(values, np.flatnonzero(values))

    def expand(self, reduced: Chosen) -> np.ndarray:
        values = np.zeros_like(reduced.values)
        values[reduced.indices] = reduced.values[reduced.indices]
        return values

    def pack(self, reduced: Chosen) -> bytes:
        return packing.pack_sparse(*reduced)

    def reduce_sum(
        self, total: np.ndarray, scaler: np.float32, draws: np.ndarray, workers: int
    ) -> Chosen | None:
        chosen = Chosen(total, np.flatnonzero(total))
        return chosen if len(self.pack(chosen)) < 4 * total.size else None
