"""EC-DNN, averages of models and a final ensemble, with all workers' networks as arrays.

The rounds are those of kvstore_ext.ec_dnn.Trainer, with its order of examples, its draws and its
coefficients; tests/benchmarks compares the parameters.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Tuple

import numpy as np
from kvstore_ext.ec_dnn import Method, relabelling
from kvstore_ext.ec_dnn.local_data import Order
from simulations.stacked_networks import Slope, StackedNetworks


@dataclass(frozen=True)
class Round:
    """What aggregation finds: models before it and, of ensembles, equation 4's sides on each
    worker's relabelled examples, (K, 2)."""

    local: StackedNetworks
    losses: Optional[np.ndarray]


class Workers:
    """K workers of equally many examples.

    Parameters
    ----------
    networks
        One a worker; with ma_dnn those of the first are given to all.
    examples
        Inputs (N, features) and labels (N,) of all workers together.
    parts
        Which of these each worker has, (K, n).
    rate
        The learning rate of a mini-batch, counted from 1.
    """

    def __init__(
        self,
        networks: StackedNetworks,
        examples: Tuple[np.ndarray, np.ndarray],
        parts: np.ndarray,
        method: Method,
        batch_size: int,
        rate: Callable[[int], float],
        seed: int,
    ) -> None:
        self.networks, self.steps = networks, 0
        self._inputs, self._labels = examples
        self._parts, self._method, self._rate = parts, method, rate
        self._batch_size = batch_size
        self._randoms = [np.random.RandomState([seed, rank]) for rank in range(len(parts))]
        self._orders = [
            Order(part, batch_size, random) for part, random in zip(parts, self._randoms)
        ]
        self._true = np.eye(networks.layers[-1].shape[-1], dtype=np.float32)
        self._compressed = False
        if method.name == "ma_dnn":
            for layer in networks.layers:
                layer[:] = layer[0]

    def rounds(self, count: int) -> Iterator[Round]:
        """Trains; yields after the aggregation, its average or compression included."""
        for _ in range(count):
            self._train_locally()
            local = self.networks.copy()
            losses = None
            if self._method.name == "ma_dnn":
                self.networks.average()
            elif self._method.compresses:
                losses = self._compress()
            yield Round(local, losses)

    def outputs(self, networks: StackedNetworks) -> np.ndarray:
        """Logarithms of the softmax of all examples, (K, N, C)."""
        return relabelling.log_softmax(networks.scores(self._inputs))

    def best_local(self, local: StackedNetworks) -> int:
        """Which network has the smallest cross entropy over all workers' examples."""
        losses = -self.outputs(local)[:, np.arange(len(self._labels)), self._labels].mean(axis=1)
        return int(losses.argmin())

    def coefficients(self, networks: StackedNetworks) -> np.ndarray:
        """Those of the global model, (K,)."""
        if self._method.name == "ec_dnn_r":
            return relabelling.regression(self.outputs(networks), self._labels)
        return relabelling.even(len(self._parts))

    def _train_locally(self) -> None:
        batches = [order.take(self._method.tau) for order in self._orders]
        alpha = self._method.alpha
        average = None
        if self._compressed and alpha > 0:
            average = np.exp(self.outputs(self.networks)).mean(axis=0)
        for indices in np.stack(batches, axis=1):
            true = self._true[self._labels[indices]]
            if average is None:
                self._step(indices, lambda found, true=true: found - true)
            else:
                away = average[indices]
                self._step(indices, lambda found, true=true, away=away: (
                    found - true - alpha * of_distance(found, away)))

    def _compress(self) -> np.ndarray:
        """Algorithm 2 on each worker; returns equation 4's sides."""
        outputs = self.outputs(self.networks)
        batches, labels, losses = [], [], []
        for part, random in zip(self._parts, self._randoms):
            portion = max(1, round(self._method.mu * len(part)))
            chosen = part[random.permutation(len(part))[:portion]]
            found, true = outputs[:, chosen], self._labels[chosen]
            coefficients = relabelling.coefficients(self._method.name, found, true)
            pseudo = relabelling.pseudo_labels(relabelling.combine(found, coefficients))
            order = Order(np.arange(len(chosen)), self._batch_size, random)
            places = order.take(self._method.compression_steps)
            batches.append(chosen[places])
            labels.append(pseudo[places])
            losses.append(relabelling.cross_entropies(found, true))
        beta = self._method.beta
        for indices, pseudo in zip(np.stack(batches, axis=1), np.stack(labels, axis=1)):
            goal = self._true[self._labels[indices]] + beta * pseudo
            self._step(indices, lambda found, goal=goal: (1 + beta) * found - goal)
        self._compressed = True
        return np.array(losses)

    def _step(self, indices: np.ndarray, slope: Slope) -> None:
        self.steps += 1
        self.networks.step(self._inputs[indices], slope, self._rate(self.steps))


def of_distance(found: np.ndarray, average: np.ndarray) -> np.ndarray:
    """The derivatives of the softmax's distance from an average, by the scores."""
    away = found - average
    away /= np.sqrt(np.square(away).sum(axis=-1, keepdims=True) + 1e-12)
    return np.asarray(found * (away - (found * away).sum(axis=-1, keepdims=True)))


def make_layers(seed: int, workers: int, features: int, hidden: int, classes: int
                ) -> List[np.ndarray]:
    """He's normal numbers, and biases of 0."""
    random = np.random.RandomState(seed)
    layers: List[np.ndarray] = []
    for before, after in ((features, hidden), (hidden, classes)):
        weights = random.normal(0, (2 / before) ** 0.5, (workers, before, after))
        layers += weights.astype(np.float32), np.zeros((workers, 1, after), np.float32)
    return layers
