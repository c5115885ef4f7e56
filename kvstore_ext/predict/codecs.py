"""How many bytes an element takes by each compression, there and back."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Dict

SENT_BY_DGC = 0.001  # the share sent in the end, as compression/dgc.py has it
_DGC_ELEMENT = 6.0  # bytes of an element that is sent
_DGC_LEAST = 0.02  # bytes of an element by which slices are cut (csrc/codecs/dgc.cc)
# Of the parameters, that travel with slim_dp, and that always do: alpha and beta of
# slim_dp/options.py.
SLIM_ALL, SLIM_CORE = 0.3, 0.15
_BUCKET = 512  # elements that share a norm, or two means


@dataclass(frozen=True)
class Codec:
    """A compression, with its default options.

    Parameters
    ----------
    there : float
        Bytes of an element on its way to a server.
    back : callable
        Bytes of an element of the sum of so many workers.
    answers : int
        How many times a key waits for its servers before it is encoded.
    sliced : float
        Bytes of an element by which keys are cut; 0: the larger of the two.
    """

    there: float
    back: Callable[[int], float]
    answers: int = 0
    sliced: float = 0.0

    def cut(self, workers: int) -> float:
        """Bytes of an element by which keys are cut into slices."""
        return self.sliced or max(self.there, self.back(workers))


def _levels(workers: int) -> float:
    """TernGrad's sums are of 2 N + 1 values."""
    return math.log2(2 * workers + 1) / 8


def _always(size: float) -> Callable[[int], float]:
    return lambda _workers: size


def _chosen(workers: int) -> float:
    """DGC's sums have what any worker has sent; as floats where that is less."""
    return min(4.0, _DGC_ELEMENT * (1 - (1 - SENT_BY_DGC) ** workers))


_QSGD = 1 + 4 / _BUCKET
_ONE_BIT = 1 / 8 + 8 / _BUCKET

CODECS: Dict[str, Codec] = {
    "terngrad": Codec(1 / 5, _levels, answers=1),
    "qsgd": Codec(_QSGD, _always(_QSGD)),
    "dgc": Codec(_DGC_ELEMENT * SENT_BY_DGC, _chosen, sliced=_DGC_LEAST),
    "onebit": Codec(_ONE_BIT, _always(_ONE_BIT)),
    "signsgd": Codec(1 / 8, _always(1 / 8)),
    "fp16": Codec(2, _always(2)),
    "2bit": Codec(1 / 4, _always(4)),
}
PLAIN = Codec(4, _always(4))
