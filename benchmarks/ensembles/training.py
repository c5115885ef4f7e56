"""A training by a method of the paper, with workers that are simulated, and what it comes to."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from ensembles.parts import Pair, Parts
from ensembles.tasks import BATCH, TASKS
from kvstore_ext.ec_dnn import Method, relabelling
from simulations.ensembles import Workers, make_layers
from simulations.stacked_networks import StackedNetworks

MEASUREMENTS = 10  # of errors in a training; where ensembles are compressed, one each round
MOMENTUM, DECAY = 0.9, 5e-4
RATE_FALLS = 5 / 6  # of the training, then to a tenth


@dataclass(frozen=True)
class Training:
    """The split, the first parameters and the order of the examples follow from the seed.

    Parameters
    ----------
    data
        "partitioned", each worker with 1/K of the examples, or "shared", each with all of them.
    tau
        e_dnn and s_dnn, which never aggregate while they train, have 0.
    p
        In per cent of the whole training, as in the paper.
    measured
        Up to where a row of the curve counts mini-batches. Older files do not say it: they count
        those of the compression that follows, too, and are trained again.
    """

    task: str
    data: str
    method: str
    workers: int
    tau: int
    seed: int
    p: float = Method.p
    mu: float = Method.mu
    alpha: float = Method.alpha
    beta: float = Method.beta
    measured: str = "before compression"

    def run(self) -> Dict[str, Any]:
        """Trains; returns shares of examples that are not recognised.

        "local", "global": of the model with the smallest training loss and of the global one, on
        the validation part and the test part. "training": the mean of the local models', each on
        its worker's examples. "curve": mini-batches before an aggregation, and on the test part the
        global model's, the mean of the local models' and the same after compression or averaging.
        "jensen": equation 4's sides, of each worker at each aggregation.
        """
        parts = TASKS[self.task].parts(self.seed)
        workers = self._workers(parts)
        curve: List[List[float]] = []
        losses: List[List[float]] = []
        every = 1 if self.options.compresses else max(1, self.rounds // MEASUREMENTS)
        for number, found in enumerate(workers.rounds(self.rounds), 1):
            if number % every == 0 or number == self.rounds:
                before = workers.steps - self.options.compression_steps
                curve.append([before, *self._errors(workers, found.local, parts.test)])
            if found.losses is not None:
                losses += found.losses.tolist()
        ends = workers.networks if self.options.compresses else found.local
        best = workers.best_local(ends)
        shares = self._shares(len(parts.train[1]))
        measured = (parts.validation, parts.test)
        return {
            "local": [float(errors_of(ends, part)[best]) for part in measured],
            "global": [self._of_global(workers, workers.networks, part) for part in measured],
            "training": float(np.mean([
                errors_of(ends, (parts.train[0][share], parts.train[1][share]))[rank]
                for rank, share in enumerate(shares)])),
            "curve": curve,
            "jensen": losses,
        }

    @property
    def options(self) -> Method:
        """As ec_dnn.Trainer takes them."""
        steps = TASKS[self.task].steps
        return Method(
            self.method, tau=self.tau or steps // MEASUREMENTS, p=self.p, mu=self.mu,
            alpha=self.alpha, beta=self.beta, training_steps=steps,
        )

    @property
    def rounds(self) -> int:
        """As many as come closest to the task's number of mini-batches."""
        return round(TASKS[self.task].steps / self._length)

    @property
    def steps(self) -> int:
        """Mini-batches of a worker in all rounds, those of compression included."""
        return self.rounds * self._length

    @property
    def _length(self) -> int:
        return self.options.tau + self.options.compression_steps

    def _workers(self, parts: Parts) -> Workers:
        task = TASKS[self.task]
        layers = make_layers(
            self.seed, self.workers, parts.train[0].shape[1], task.hidden, task.classes)
        schedule = mx.lr_scheduler.FactorScheduler(
            int(self.steps * RATE_FALLS), 0.1, base_lr=task.rate)
        return Workers(
            StackedNetworks(layers, MOMENTUM, DECAY), parts.train,
            self._shares(len(parts.train[1])), self.options, BATCH, schedule, self.seed)

    def _shares(self, examples: int) -> np.ndarray:
        everything = np.arange(examples)
        if self.data == "shared":
            return np.stack([everything] * self.workers)
        return np.stack([everything[rank :: self.workers] for rank in range(self.workers)])

    def _errors(self, workers: Workers, local: StackedNetworks, part: Pair) -> List[float]:
        """The global model's, the local models', and theirs after compression or averaging."""
        after = float(errors_of(workers.networks, part).mean())
        before = local if self.options.is_ensemble else workers.networks
        return [self._of_global(workers, before, part), float(errors_of(local, part).mean()), after]

    def _of_global(self, workers: Workers, networks: StackedNetworks, part: Pair) -> float:
        outputs = relabelling.log_softmax(networks.scores(part[0]))
        together = relabelling.combine(outputs, workers.coefficients(networks))
        return float((together.argmax(axis=1) != part[1]).mean())


def errors_of(networks: StackedNetworks, part: Pair) -> np.ndarray:
    """Of each network, (K,)."""
    return np.asarray((networks.scores(part[0]).argmax(axis=2) != part[1]).mean(axis=1))
