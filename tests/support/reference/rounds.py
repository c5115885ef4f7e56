"""Rounds of a parameter server in NumPy: what every worker gets back, whatever the bytes are.

Keys are not cut into slices here: no value depends on it, for slices begin where buckets do.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.reference import formulas
from tests.support.reference.codecs import DGC, Chosen, Method, Scaled, TernGrad
from tests.support.reference.formulas import Draws


class Encoder:
    """One key at a worker (csrc/codecs/key_encoder.h): error feedback, and TernGrad's clipping."""

    def __init__(self, method: Method, elements: int) -> None:
        self.method = method
        self.carried = np.zeros(elements, np.float32)
        self._values = self.carried
        self._limit = np.float32(0)

    def prepare(self, gradient: np.ndarray, round: int) -> np.float32:
        """The key's scaler; not a number where a value is not finite, and nothing has changed."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.carried + gradient if self.method.carries_over else gradient
        scaler = self.method.scaler(values)
        if not np.isnan(scaler):
            self._values, self._limit = values, scaler
            self.carried = values
        return scaler

    def reduce(self, scaler: np.float32, draws: np.ndarray) -> Any:
        """What travels of the round's gradient. What is left out is carried over."""
        reduced = self._reduce(scaler, draws)
        if self.method.carries_over:
            self.carried = self._values - self.method.expand(reduced)
        return reduced

    def _reduce(self, scaler: np.float32, draws: np.ndarray) -> Any:
        if isinstance(self.method, TernGrad):
            # Equation 21 is every worker's own, equation 4 theirs together.
            clipped = formulas.clip(self._values, self._limit)
            return Scaled(scaler, formulas.ternarize(clipped, scaler, draws))
        return self.method.reduce(self._values, scaler, draws)

    @property
    def state(self) -> np.ndarray:
        """What is carried over."""
        return self.carried if self.method.carries_over else np.zeros(0, np.float32)


class DGCEncoder(Encoder):
    """Lin et al., algorithms 1 and 4: momentum correction, accumulation, clipping and masking."""

    def __init__(self, method: DGC, elements: int, workers: int, momentum: float = 0.0) -> None:
        super().__init__(method, elements)
        self.dgc = method
        self.workers = workers
        self.momentum = np.float32(momentum)
        self.velocity = np.zeros(elements, np.float32)  # u; what is carried over is v
        self.sent = np.zeros(0, np.int64)  # indices

    def prepare(self, gradient: np.ndarray, round: int) -> np.float32:
        scaler = self.method.scaler(gradient)
        if np.isnan(scaler):
            return scaler
        clipped = formulas.clip_norm(gradient, self.dgc.clip, self.workers)
        self.velocity = self.momentum * self.velocity + clipped
        self.carried = self.carried + self.velocity
        ratio = formulas.dgc_ratio(
            round, self.dgc.final_ratio, self.dgc.warmup, self.dgc.stages
        )
        self.sent = formulas.largest(self.carried, formulas.dgc_count(ratio, gradient.size))
        return scaler

    def reduce(self, scaler: np.float32, draws: np.ndarray) -> Chosen:
        chosen = Chosen(self.carried.copy(), self.sent)
        self.carried[self.sent] = 0
        if self.dgc.masking:
            self.velocity[self.sent] = 0
        return chosen

    @property
    def state(self) -> np.ndarray:
        return np.concatenate([self.carried, self.velocity])


def make_encoder(method: Method, elements: int, workers: int, momentum: float = 0.0) -> Encoder:
    """The one that a method needs."""
    if isinstance(method, DGC):
        return DGCEncoder(method, elements, workers, momentum)
    return Encoder(method, elements)


class Simulation:
    """One key, its workers and its server.

    Where sums travel back with loss and the method has error feedback, the server carries over too.
    """

    def __init__(
        self,
        method: Method,
        workers: int,
        elements: int,
        *,
        seed: int = 0,
        key: int = 0,
        momentum: float = 0.0,
    ) -> None:
        self.method = method
        self.workers = [
            make_encoder(method, elements, workers, momentum) for _ in range(workers)
        ]
        self.carried = np.zeros(elements, np.float32)  # at the server
        self._elements = elements
        self._seed, self._key = seed, key

    def round(self, gradients: list[np.ndarray], number: int) -> np.ndarray:
        """What every worker gets as the sum of the workers' gradients, which are finite."""
        scalers = [
            worker.prepare(gradient, number)
            for worker, gradient in zip(self.workers, gradients)
        ]
        shared = max(scalers)  # equation 4
        if self.method.shares_scaler:
            scalers = [shared] * len(scalers)
        total = np.zeros(self._elements, np.float32)
        for rank, (worker, scaler) in enumerate(zip(self.workers, scalers)):
            total += self.method.expand(worker.reduce(scaler, self._draws(rank, number)))
        return self._travel_back(total, shared, self._draws(Draws.SERVER, number))

    def _travel_back(
        self, total: np.ndarray, scaler: np.float32, draws: np.ndarray
    ) -> np.ndarray:
        if self.method.carries_over:
            total = total + self.carried
        reduced = self.method.reduce_sum(total, scaler, draws, len(self.workers))
        if reduced is None:
            return total
        received = self.method.expand(reduced)
        if self.method.carries_over:
            self.carried = total - received
        return received

    def _draws(self, sender: int, number: int) -> np.ndarray:
        return Draws(self._seed, sender, self._key, number).numbers(self._elements)
