"""Algorithms 1 and 2 of the EC-DNN paper for K workers, in NumPy: a dense softmax classifier.

Written from the paper's equations alone, with gradients by hand. A model is (W, b): W of shape
(classes, inputs), b of shape (classes,); the outputs are softmax(W x + b).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Tuple

import numpy as np

Model = Tuple[np.ndarray, np.ndarray]
Batches = Callable[[int, int], np.ndarray]


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def outputs(model: Model, x: np.ndarray) -> np.ndarray:
    return softmax(x @ model[0].T + model[1])


def step(model: Model, x: np.ndarray, d_scores: np.ndarray, rate: float) -> Model:
    """One step of SGD, with the derivative of the loss by the scores, summed over the batch."""
    d = d_scores / len(x)
    return model[0] - rate * d.T @ x, model[1] - rate * d.sum(axis=0)


def d_cross_entropy(f: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Of -sum target log f by the scores, for targets that sum to 1."""
    return f - target


def d_distance(f: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Of the Euclidean distance |f - z| by the scores."""
    away = (f - z) / np.sqrt(((f - z) ** 2).sum(axis=1, keepdims=True))
    return f * (away - (f * away).sum(axis=1, keepdims=True))


def diverse_step(m: Model, x: np.ndarray, y: np.ndarray, z: np.ndarray | None, alpha: float,
                 rate: float) -> Model:
    """Equation 9; y is one-hot."""
    f = outputs(m, x)
    d = d_cross_entropy(f, y)
    return step(m, x, d if z is None else d - alpha * d_distance(f, z), rate)


def compression_step(m: Model, x: np.ndarray, y: np.ndarray, pseudo: np.ndarray, beta: float,
                     rate: float) -> Model:
    """Equation 10."""
    f = outputs(m, x)
    return step(m, x, d_cross_entropy(f, y) + beta * d_cross_entropy(f, pseudo), rate)


def coefficients(method: str, stacked: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(K, n) of outputs (K, n, C) and one-hot labels (n, C)."""
    count, examples, _ = stacked.shape
    if method == "ec_dnn_r":
        design = np.stack([output.ravel() for output in stacked], axis=1)
        found = np.linalg.lstsq(design, y.ravel(), rcond=None)[0]
        return np.repeat(found[:, None], examples, axis=1)
    if method == "ec_dnn_m":
        found = np.zeros((count, examples))
        for i in range(examples):
            true = y[i].argmax()
            for k in range(count):
                rest = np.delete(stacked[k, i], true)
                found[k, i] = max(stacked[k, i, true] - rest.max(), 0)
            found[:, i] = found[:, i] / found[:, i].sum() if found[:, i].any() else 1 / count
        return found
    return np.full((count, examples), 1 / count)


def pseudo_labels(stacked: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Clipped at 0 and renormalised."""
    combined = np.maximum((weights[:, :, None] * stacked).sum(axis=0), 0)
    return combined / combined.sum(axis=1, keepdims=True)


@dataclass
class Worker:
    """One worker's examples (one-hot labels) and what it draws."""

    x: np.ndarray
    y: np.ndarray
    local: list[np.ndarray]  # a round: (tau, batch) indices
    chosen: list[np.ndarray]  # a round: relabelled examples
    compression: list[np.ndarray]  # a round: (steps, batch) places in `chosen`


def ec_dnn(method: str, models: list[Model], workers: list[Worker], rounds: int, alpha: float,
           beta: float, rate: float) -> list[Model]:
    compressed: list[Model] | None = None
    for number in range(rounds):
        for k, worker in enumerate(workers):
            for batch in worker.local[number]:
                z = None
                if compressed is not None:
                    z = np.mean([outputs(other, worker.x[batch]) for other in compressed], axis=0)
                models[k] = diverse_step(models[k], worker.x[batch], worker.y[batch], z, alpha,
                                         rate)
        aggregated = list(models)
        for k, worker in enumerate(workers):
            chosen = worker.chosen[number]
            stacked = np.stack([outputs(other, worker.x[chosen]) for other in aggregated])
            labels = pseudo_labels(stacked, coefficients(method, stacked, worker.y[chosen]))
            for places in worker.compression[number]:
                batch = chosen[places]
                models[k] = compression_step(models[k], worker.x[batch], worker.y[batch],
                                             labels[places], beta, rate)
        compressed = list(models)
    return models
