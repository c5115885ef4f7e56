"""What the workers agree on about their models: the best one, and one regression for all."""
from __future__ import annotations

from typing import List, Optional, Tuple

import mxnet as mx
import numpy as np

from . import relabelling
from .learner import Learner
from .models import Models


def best_local(
    learner: Learner, models: Models, own: Optional[List[mx.nd.NDArray]]
) -> Tuple[List[mx.nd.NDArray], np.ndarray]:
    """The model with the smallest training loss, and all models' losses, (K,) by rank.

    A loss is the mean cross entropy over the examples of all workers, each of which counts once
    whoever has it.

    Parameters
    ----------
    own
        This worker's model; None for what its network holds.
    """
    given = models.copy() if own is None else own
    sums = np.zeros(models.count + 1)
    for rank in models.each(given):
        outputs, labels = learner.outputs_of_all()
        sums[rank] = -outputs[np.arange(len(labels)), labels].astype(np.float64).sum()
    sums[-1] = len(learner.examples)
    sums = models.sum(sums)
    losses = sums[:-1] / sums[-1]
    held = models.copy()
    models.broadcast(int(losses.argmin()), given)
    best = models.copy()
    models.put(held)
    return best, losses


def even(models: Models) -> np.ndarray:
    """1/K for each model (equation 5)."""
    return np.full(models.count, 1 / models.count)


def common_coefficients(models: Models, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Equation 7 over all workers' examples, (K,): those of the global model; 1/K where all of
    them together are fewer than the models.

    Parameters
    ----------
    outputs, labels
        Of this worker: (K, n, C) and (n,).
    """
    count = float(models.sum(np.array([len(labels)]))[0])
    equations = models.sum(relabelling.normal_equations(outputs, labels))
    return even(models) if count < models.count else relabelling.solve(equations)
