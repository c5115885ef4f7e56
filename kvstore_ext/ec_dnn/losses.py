"""The two losses of section 5, one value an example; labels are class numbers."""
from __future__ import annotations

from typing import Any

from mxnet.gluon import HybridBlock

# Keeps the distance's gradient finite where an output meets the average.
_LEAST_SQUARE = 1e-12


class DiverseTrainingLoss(HybridBlock):
    """Cross entropy less alpha times the distance from the compressed models (equation 9).

    Inputs are scores (batch, C), labels (batch,) and the average (batch, C) of the outputs of the
    latest compressed models. The distance is the Euclidean one of the softmax from that.

    Parameters
    ----------
    alpha
        0 or more.
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = alpha

    def hybrid_forward(self, F: Any, scores: Any, labels: Any, average: Any) -> Any:
        squares = F.square(F.softmax(scores) - average).sum(axis=1)
        distance = F.sqrt(squares + _LEAST_SQUARE)
        return cross_entropy(F, scores, labels) - self._alpha * distance


class AcceleratedCompressionLoss(HybridBlock):
    """Cross entropy plus beta times that from the pseudo-labels (equation 10).

    Inputs are scores (batch, C), labels (batch,) and pseudo-labels (batch, C).

    Parameters
    ----------
    beta
        0 or more.
    """

    def __init__(self, beta: float) -> None:
        super().__init__()
        self._beta = beta

    def hybrid_forward(self, F: Any, scores: Any, labels: Any, pseudo_labels: Any) -> Any:
        compression = -(F.log_softmax(scores) * pseudo_labels).sum(axis=1)
        return cross_entropy(F, scores, labels) + self._beta * compression


def cross_entropy(F: Any, scores: Any, labels: Any) -> Any:
    """Of shape (batch,)."""
    return -F.pick(F.log_softmax(scores), labels, axis=1)
