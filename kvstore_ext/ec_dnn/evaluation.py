"""Errors of local and global models, measured by all workers together."""
from __future__ import annotations

from typing import Any, Dict, Sequence

import numpy as np

from .learner import Learner
from .local_data import Examples
from .models import Models
from .relabelling import combine


class Evaluation:
    """Examples on which errors are measured; every worker has all and takes its share of them."""

    def __init__(self, examples: Examples, learner: Learner, models: Models) -> None:
        self._learner, self._models = learner, models
        self._examples = examples
        self._all = np.arange(len(self._examples))
        self._share = self._all[models.rank :: models.count]
        self._labels = np.zeros(0, np.int64)

    def outputs(self) -> np.ndarray:
        """Of the model that the network holds, for this worker's share, (n, C)."""
        found, self._labels = self._learner.outputs(self._examples, self._share)
        return found

    def of_ensemble(
        self, outputs: Sequence[np.ndarray], coefficients: np.ndarray
    ) -> Dict[str, Any]:
        """Errors of the workers' models and their ensemble, from `outputs` of each."""
        stacked = np.stack(outputs)
        wrong = (stacked.argmax(axis=2) != self._labels).sum(axis=1)
        wrong_together = (combine(stacked, coefficients).argmax(axis=1) != self._labels).sum()
        return self._summed([*wrong, wrong_together])

    def count_own(self) -> np.ndarray:
        """How many examples, of all, this worker's model gets wrong, at its rank in (K,)."""
        found, labels = self._learner.outputs(self._examples, self._all)
        wrong = np.zeros(self._models.count)
        wrong[self._models.rank] = (found.argmax(axis=1) != labels).sum()
        return wrong

    def of_one(self, counted: np.ndarray) -> Dict[str, Any]:
        """Errors of the workers' models, as counted, and of the one that all hold now."""
        if self._models.count == 1:
            return self._summed([*counted, *counted])
        found = self.outputs()
        return self._summed([*counted, (found.argmax(axis=1) != self._labels).sum()])

    def _summed(self, wrong: Sequence[float]) -> Dict[str, Any]:
        shares = self._models.sum(np.array(wrong, np.float64)) / len(self._examples)
        return {"local_errors": shares[:-1], "global_error": float(shares[-1])}
