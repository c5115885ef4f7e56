"""The papers' formulas and the core's random numbers in NumPy, written apart from the core's C++.

Values are float32 and so is all arithmetic, rounded to nearest, unless it says double. `draws` are
24-bit numbers, one for each value.
"""
from __future__ import annotations

import dataclasses
from typing import ClassVar, Iterator

import numpy as np

FLOAT_MAX = np.finfo(np.float32).max
_32_BITS = (1 << 32) - 1
_64_BITS = (1 << 64) - 1


def mix(value: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _64_BITS
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _64_BITS
    return value ^ value >> 31


@dataclasses.dataclass(frozen=True)
class Draws:
    """The numbers of one sender, key and round (csrc/support/random.h)."""

    SERVER: ClassVar[int] = 0xFFFFFFFF

    seed: int
    sender: int  # a worker's rank, or SERVER
    key: int
    round: int

    def numbers(self, elements: int, offset: int = 0) -> np.ndarray:
        """Those of so many elements of the key from `offset` on, uint32."""
        stream = mix(self.seed)
        for part in (self.sender, self.key, self.round):
            stream = mix(stream ^ part)
        first, second = np.uint32(stream & _32_BITS), np.uint32(stream >> 32)
        word = np.arange(offset, offset + elements, dtype=np.uint64).astype(np.uint32) ^ first
        word = (word ^ word >> np.uint32(16)) * np.uint32(0x7FEB352D)
        word ^= second
        word = (word ^ word >> np.uint32(15)) * np.uint32(0x846CA68B)
        return (word ^ word >> np.uint32(16)) >> np.uint32(8)


def happens(probability: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Which events of these probabilities happen: those whose number is below it, of 2**24."""
    return draws.astype(np.int32) < np.rint(probability * np.float32(2**24)).astype(np.int32)


def lane_sum(values: np.ndarray) -> float:
    """Their sum in double: 16 interleaved sums, each in order, then added up by halves."""
    table = np.zeros((1 + -(-values.size // 16), 16))
    table[1:].reshape(-1)[: values.size] = values
    lanes = np.add.accumulate(table, axis=0)[-1]
    while lanes.size > 1:
        half = lanes.size // 2
        lanes = lanes[:half] + lanes[half:]
    return float(lanes[0])


def square_sum(values: np.ndarray) -> float:
    """The sum of their squares, in double."""
    return lane_sum(values.astype(np.float64) ** 2)


def buckets(values: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Consecutive parts of that size, the last perhaps shorter."""
    for begin in range(0, values.size, size):
        yield values[begin : begin + size]


def spread(numbers: np.ndarray, size: int, elements: int) -> np.ndarray:
    """Each bucket's number for each of its elements."""
    return np.repeat(numbers, size)[:elements]


# --- TernGrad: Wen et al., NIPS 2017


def standard_deviation(values: np.ndarray) -> float:
    """The population's, in double; 0 for one that rounding alone has made."""
    mean_square = square_sum(values) / values.size
    variance = max(0.0, mean_square - (lane_sum(values) / values.size) ** 2)
    return 0.0 if variance <= 1e-12 * mean_square else float(np.sqrt(variance))


def terngrad_scaler(values: np.ndarray, clip_sigma: float) -> np.float32:
    """Equation 2, of what equation 21 leaves: the largest magnitude, at most clip_sigma sigma."""
    if values.size == 0:
        return np.float32(0)
    if not np.isfinite(values).all():
        return np.float32(np.nan)
    largest = np.abs(values).max()
    with np.errstate(over="ignore", under="ignore"):
        limit = np.float32(clip_sigma * standard_deviation(values))
    return min(largest, limit) if limit > 0 else largest


def clip(values: np.ndarray, limit: np.float32) -> np.ndarray:
    """Equation 21, with the limit c sigma."""
    return np.clip(values, -limit, limit)


def ternarize(values: np.ndarray, scaler: np.float32, draws: np.ndarray) -> np.ndarray:
    """Equations 1 and 3, without the factor s: digits -1, 0 and 1, int64.

    The values are clipped; the scaler is this worker's, or that of equation 4.
    """
    if scaler == 0:
        return np.zeros(values.size, np.int64)
    chosen = happens(np.abs(values) / scaler, draws)
    return np.sign(values).astype(np.int64) * chosen


def sum_of_digits(total: np.ndarray, scaler: np.float32, workers: int) -> np.ndarray:
    """What section 3.1 calls the 2N + 1 levels of the sum with a shared scaler, int64."""
    if scaler == 0:
        return np.zeros(total.size, np.int64)
    with np.errstate(over="ignore"):
        levels = np.clip(total / scaler, -workers, workers)
    return np.rint(levels).astype(np.int64)


def average(total: np.ndarray, workers: int) -> np.ndarray:
    """Algorithm 1, line 7."""
    return total / np.float32(workers)


# --- QSGD: Alistarh et al., NIPS 2017


def bucket_norms(values: np.ndarray, bucket: int, euclidean: bool) -> np.ndarray:
    """Each bucket's l2 norm, or its largest magnitude as in the paper's experiments."""
    if euclidean:
        norms = [np.sqrt(square_sum(part)) for part in buckets(values, bucket)]
        return np.minimum(norms, FLOAT_MAX).astype(np.float32)
    return np.array([np.abs(part).max() for part in buckets(values, bucket)], np.float32)


def quantize(
    values: np.ndarray, norms: np.ndarray, bucket: int, levels: int, draws: np.ndarray
) -> np.ndarray:
    """Section 3.1: Q_s(v) without the factor norm / s, whole numbers from -s to s, int64."""
    norm = spread(norms, bucket, values.size)
    positive = norm > 0
    safe = np.where(positive, norm, np.float32(1))
    scaled = np.abs(values) / safe * np.float32(levels)
    below = np.floor(scaled)
    level = below.astype(np.int64) + happens(scaled - below, draws)
    return np.where(positive, np.sign(values).astype(np.int64) * np.minimum(level, levels), 0)


def dequantize(levels: np.ndarray, norms: np.ndarray, bucket: int, most: int) -> np.ndarray:
    """The values of levels from -most to most."""
    fractions = levels.astype(np.float32) / np.float32(most)
    return spread(norms, bucket, levels.size) * fractions


# --- 1-bit SGD: Seide et al., Interspeech 2014


def bucket_means(values: np.ndarray, bucket: int, chosen: np.ndarray) -> np.ndarray:
    """Each bucket's mean, in double, of those chosen; 0 where there are none."""
    means = []
    for part, which in zip(buckets(values, bucket), buckets(chosen, bucket)):
        count = np.count_nonzero(which)
        means.append(lane_sum(np.where(which, part, np.float32(0))) / count if count else 0.0)
    return np.array(means, np.float32)


def reconstruct(
    positive: np.ndarray, above: np.ndarray, below: np.ndarray, bucket: int
) -> np.ndarray:
    """Two values a bucket: one for elements from 0 on, one for those below."""
    size = positive.size
    return np.where(positive, spread(above, bucket, size), spread(below, bucket, size))


# --- signSGD: Bernstein et al., ICML 2018


def signs(values: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Whether each is above zero; of a zero a fair coin says so."""
    coins = happens(np.full(values.shape, 0.5, np.float32), draws)
    return np.where(values == 0, coins, values > 0)


# --- float16, and MXNet's own "2bit"


def halve(values: np.ndarray) -> np.ndarray:
    """The nearest float16, ties to even; its largest for everything above."""
    return np.clip(values, -65504, 65504).astype(np.float16)


def threshold_codes(values: np.ndarray, threshold: np.float32) -> np.ndarray:
    """1 from the threshold on, 2 from its negative down, else 0 (GradientCompression), uint8."""
    above, below = values >= threshold, values <= -threshold
    return above.astype(np.uint8) + np.uint8(2) * below.astype(np.uint8)


# --- DGC: Lin et al., ICLR 2018


def dgc_ratio(round: int, final: float, warmup: int, stages: int) -> float:
    """Section 3.2, warm-up training: what share of the elements a round sends; rounds from 1 on."""
    if round > warmup or final >= 0.25:
        return final
    stage = (round - 1) * stages // warmup
    return float(0.25 * (final / 0.25) ** (stage / stages))


def dgc_count(ratio: float, elements: int) -> int:
    """How many elements of a key such a share is, a whole number that float64 missed included."""
    return max(1, int(np.ceil(ratio * elements * (1 - 1e-12)))) if elements else 0


def clip_norm(gradient: np.ndarray, most: float, workers: int) -> np.ndarray:
    """Section 3.1, local gradient clipping: to an l2 norm of most / sqrt(workers); 0 is off."""
    norm, limit = np.sqrt(square_sum(gradient)), most / np.sqrt(workers)
    if most == 0 or norm <= limit:
        return gradient
    return gradient * np.float32(limit / norm)


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """The indices, ascending, of those largest in magnitude; of equals the first."""
    return np.sort(np.argsort(-np.abs(values), kind="stable")[:count])
