"""What an ensemble makes of its models' outputs: sections 3.2 and 5.2, on NumPy arrays.

Outputs are logarithms of the softmax, of shape (K, n, C): models, examples, classes. Labels are
int64 of shape (n,).
"""
from __future__ import annotations

import warnings
from typing import Tuple

import numpy as np


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over the last axis, float32."""
    shifted = scores.astype(np.float64) - scores.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return np.asarray(logs, np.float32)


def even(models: int) -> np.ndarray:
    """1/K for each model, (K,) (equation 5)."""
    return np.full(models, 1 / models)


def coefficients(method: str, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Those by which a method's ensemble labels a worker's examples, (K,) or (K, n).

    With fewer examples than models ec_dnn_r's regression would be singular: it warns, and uses 1/K.
    """
    if method == "ec_dnn_m":
        return margin(outputs, labels)
    if method == "ec_dnn_r" and len(labels) >= len(outputs):
        return regression(outputs, labels)
    if method == "ec_dnn_r":
        warnings.warn(
            f"ec_dnn_r relabels {len(labels)} examples, fewer than the {len(outputs)} models, so "
            "that the regression would be singular: it uses 1/K",
            stacklevel=2,
        )
    return even(len(outputs))


def regression(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Coefficients (K,) by least squares on the true labels, one-hot (equation 7).

    Of several solutions it is the shortest. Below K examples it says nothing: use 1/K there.
    """
    models = np.exp(outputs.astype(np.float64)).reshape(len(outputs), -1)
    solution = np.linalg.lstsq(models.T, one_hot(labels, outputs.shape[-1]).ravel(), rcond=None)
    return np.asarray(solution[0])


def normal_equations(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of that regression, (K, K + 1), float64: they add up over workers."""
    models = np.exp(outputs.astype(np.float64)).reshape(len(outputs), -1)
    right = models @ one_hot(labels, outputs.shape[-1]).ravel()
    return np.column_stack([models @ models.T, right])


def solve(equations: np.ndarray) -> np.ndarray:
    """The coefficients (K,) that sums of normal equations give."""
    return np.asarray(np.linalg.lstsq(equations[:, :-1], equations[:, -1], rcond=None)[0])


def margin(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Coefficients (K, n) in proportion to the models' margins (equation 8).

    A margin is the output for the true class less the largest for another, at least 0; where all
    are 0, each model has 1/K.
    """
    outputs = np.exp(outputs.astype(np.float64))
    true = np.broadcast_to(labels[None, :, None], (*outputs.shape[:2], 1))
    of_true = np.take_along_axis(outputs, true, axis=2)[..., 0]
    others = outputs.copy()
    np.put_along_axis(others, true, -np.inf, axis=2)
    margins = np.maximum(of_true - others.max(axis=2), 0)
    total = margins.sum(axis=0)
    even = np.full_like(margins, 1 / len(margins))
    return np.where(total > 0, margins / np.where(total > 0, total, 1), even)


def combine(outputs: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The ensemble's outputs (n, C), float64, with coefficients (K,) or (K, n) (equations 5, 6)."""
    total = np.zeros(outputs.shape[1:])
    for output, coefficient in zip(outputs, coefficients):  # in float64 one model's at a time
        total += np.reshape(coefficient, (-1, 1)) * np.exp(output.astype(np.float64))
    return total


def pseudo_labels(ensemble: np.ndarray) -> np.ndarray:
    """An ensemble's outputs (n, C) as probabilities: clipped at 0 and renormalised, float32.

    Coefficients of a regression may be negative. An example whose outputs are all 0 or less gets
    1/C everywhere.
    """
    clipped = np.maximum(ensemble, 0)
    total = clipped.sum(axis=1, keepdims=True)
    even = np.full_like(clipped, 1 / clipped.shape[1])
    return np.where(total > 0, clipped / np.where(total > 0, total, 1), even).astype(np.float32)


def cross_entropies(outputs: np.ndarray, labels: np.ndarray) -> Tuple[float, float]:
    """The simple ensemble's mean cross entropy, and the mean of its models': Jensen's inequality
    has the first at most as large as the second (equation 4)."""
    of_true = np.take_along_axis(
        outputs, labels[None, :, None].repeat(len(outputs), axis=0), axis=2
    )[..., 0].astype(np.float64)
    largest = of_true.max(axis=0)
    averaged = largest + np.log(np.exp(of_true - largest).mean(axis=0))
    return float(-averaged.mean()), float(-of_true.mean())


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    """(n, C), float64."""
    return np.eye(classes)[labels]
