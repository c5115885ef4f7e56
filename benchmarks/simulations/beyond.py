"""What was tried beyond the papers: see ../beyond.py, which says what was found.

None of it is in the package, and no test compares it with a job.
"""
from __future__ import annotations

from typing import List, Sequence, Tuple

import numpy as np
from kvstore_ext import _core
from kvstore_ext.compression import Compression
from kvstore_ext.methods import SlimDP

from .gradients import CompressedRounds
from .slim_dp import GlobalModel, Slice


class FeedbackRounds(CompressedRounds):
    """Workers that add what clipping and rounding leave of a gradient to their next one."""

    def __init__(
        self,
        method: Compression,
        workers: int,
        key: int,
        shape: Tuple[int, ...],
        momentum: float = 0.0,
    ) -> None:
        super().__init__(method, workers, key, shape, momentum)
        self._decoder = _core.Codec(method.specification(shape), workers)
        self._left = [np.zeros(shape, np.float32) for _ in range(workers)]

    def sum(self, gradients: Sequence[np.ndarray], number: int) -> np.ndarray:
        """As CompressedRounds'."""
        wanted = [left + gradient for left, gradient in zip(self._left, gradients)]
        self._left = []
        return super().sum(wanted, number)

    def sent(self, gradient: np.ndarray, scaler: float, data: bytes) -> None:
        """As CompressedRounds'."""
        decoded = np.zeros(gradient.size, np.float32)
        self._decoder.add_to(decoded, data)
        self._left.append((gradient - decoded).reshape(self._shape))


class NearestRounds(FeedbackRounds):
    """The same with TernGrad that rounds to the nearest of its three values.

    At random an element's error may be larger than the element, so that what is carried over
    grows. To the nearest it is at most half a scaler, where nothing is clipped.
    """

    def sum(self, gradients: Sequence[np.ndarray], number: int) -> np.ndarray:
        """As CompressedRounds'; the scaler is that of all workers."""
        del number
        wanted = [left + gradient for left, gradient in zip(self._left, gradients)]
        scaler = np.float32(max(self._decoder.scaler(each.ravel()) for each in wanted))
        sent = [
            np.where(np.abs(each) * 2 > scaler, np.sign(each) * scaler, np.float32(0))
            for each in wanted
        ]
        self._left = [each - part for each, part in zip(wanted, sent)]
        return np.asarray(np.sum(sent, axis=0))


class BlockMomentum(GlobalModel):
    """Servers that move on by a part of their last step (BMUF: Chen and Huo, ICASSP 2016).

    With momentum eta the step is eta times the last one, and the mean update; explored elements
    that nobody pushes go on as well. With `nesterov` parameters are ahead by eta times the step.
    """

    def __init__(
        self,
        method: SlimDP,
        initial: np.ndarray,
        slices: List[Slice],
        eta: float,
        nesterov: bool = False,
    ) -> None:
        super().__init__(method, initial, slices)
        self._eta, self._nesterov = np.float32(eta), nesterov
        self._step = np.zeros_like(initial)

    def move(self, update: np.ndarray) -> None:
        """As GlobalModel's."""
        self._step = self._eta * self._step + update
        self.parameters += self._eta * self._step + update if self._nesterov else self._step
