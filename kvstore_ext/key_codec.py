"""A compressed key's codec at this worker (csrc/key_codec.h)."""
from __future__ import annotations

from typing import Tuple

import numpy as np

from . import _core


class KeyCodec:
    """The codec of one key that is known to the lane. Its state may be touched only while no round
    of the key is under way."""

    def __init__(self, worker: _core.Worker, identity: int) -> None:
        self._worker = worker
        self._identity = identity

    def state(self) -> Tuple[int, np.ndarray]:
        """Rounds whose random numbers have been used, and what is carried over, float32."""
        return self._worker.codec_state(self._identity)

    def set_state(self, drawn: int, state: np.ndarray) -> None:
        """Goes on from what `state` returned, here or in another run."""
        self._worker.set_codec_state(self._identity, drawn, state)

    def set_momentum(self, momentum: float) -> None:
        """Of the gradients that it accumulates, where it does."""
        self._worker.set_momentum(self._identity, momentum)

    def scaler(self) -> float:
        """The last round's; 0 without one."""
        return self._worker.scaler(self._identity)

    def zeros(self) -> float:
        """The share of elements that came out as 0, from every sixteenth slice."""
        return self._worker.zeros(self._identity)
