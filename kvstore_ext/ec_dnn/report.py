"""What a round came to."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Optional

import numpy as np


@dataclass(frozen=True)
class Aggregation:
    """One round of a worker.

    Parameters
    ----------
    round
        From 1.
    steps
        Mini-batches that each worker has trained on so far, those of compression included.
    training_loss
        Mean over this worker's local steps, as minimised.
    seconds
        By phase, of this round: local, compress (training); relabel, diversity (forward passes of
        the K models for equations 10 and 9); exchange (waiting for models); evaluate. The last has
        what only measures: with e_dnn the exchanges before the last round, and all labels.
    relabelled
        How many of this worker's examples the ensemble has labelled.
    averaged
        For how many of its examples it has computed the compressed models' average output.
    ensemble_loss, mean_loss
        On these: the simple ensemble's cross entropy, and the mean of the local models'. The first
        is at most as large as the second, but for rounding. None where there is no ensemble.
    coefficients
        (K,), by which ec_dnn_r has labelled them: this worker's, from its own relabelled examples.
    local_errors, global_error
        Shares of the examples in `evaluation` that are not recognised, (K,) by rank, before
        compression or averaging; None where they were not measured. With ec_dnn_r the global one is
        by a regression over all workers' relabelled examples, and that of `global_model` by one
        over all examples.
    """

    round: int
    steps: int
    training_loss: float
    seconds: Dict[str, float] = field(default_factory=dict)
    relabelled: int = 0
    averaged: int = 0
    ensemble_loss: Optional[float] = None
    mean_loss: Optional[float] = None
    coefficients: Optional[np.ndarray] = None
    local_errors: Optional[np.ndarray] = None
    global_error: Optional[float] = None

    @property
    def training_seconds(self) -> float:
        """Of the round, without evaluation."""
        return sum(self.seconds.values()) - self.seconds.get("evaluate", 0.0)

    @property
    def relabel_share(self) -> float:
        """The share that relabelling has in these."""
        return self.seconds.get("relabel", 0.0) / max(self.training_seconds, 1e-12)
