"""What the workers agree on about their models: the best one, and one regression for all."""
from __future__ import annotations

from typing import Callable, List, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock

from . import relabelling
from .ensemble import Ensemble, copy_of
from .learner import Learner
from .models import Models


def best_local(
    learner: Learner, models: Models, own: Optional[List[mx.nd.NDArray]]
) -> Tuple[List[mx.nd.NDArray], np.ndarray]:
    """The model with the smallest training loss, and all models' losses, (K,) by rank.

    A loss is the mean cross entropy over the examples of all workers, each of which counts once
    whoever has it. It is NaN or infinity for a model that overflows, which is never the best.

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
    finite = np.where(np.isfinite(losses), losses, np.inf)  # NumPy takes NaN for the least
    models.broadcast(int(finite.argmin()), given)
    best = models.copy()
    models.put(held)
    return best, losses


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
    return relabelling.even(models.count) if count < models.count else relabelling.solve(equations)


def ensemble_of_all(
    learner: Learner, models: Models, make_network: Callable[[], HybridBlock], regression: bool
) -> Ensemble:
    """The ensemble of all workers' models as they are: with 1/K each, or by a regression over the
    examples of all workers."""
    members, outputs = [], []
    labels = np.zeros(0, np.int64)
    for _ in models.each():
        members.append(copy_of(make_network, models.arrays()))
        if regression:
            output, labels = learner.outputs_of_all()
            outputs.append(output)
    if not regression:
        return Ensemble(members)
    return Ensemble(members, common_coefficients(models, np.stack(outputs), labels))
