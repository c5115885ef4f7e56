"""Algorithms 1 and 2: local training, aggregation, relabelling, compression."""
from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from ..errors import OptionError
from ..whole_numbers import whole_number
from . import relabelling
from .ensemble import Ensemble, copy_of
from .evaluation import Evaluation
from .final import best_local, common_coefficients, ensemble_of_all
from .learner import Learner
from .local_data import Examples, Order
from .losses import AcceleratedCompressionLoss, DiverseTrainingLoss
from .method import Method
from .models import Models, check_store
from .report import Aggregation
from .trainer_run import TrainerRun


class Trainer:
    """Trains a classifier on every worker's own examples, and exchanges models now and then.

    What aggregation does to what:

    - Workers begin with the parameters that they are given; with ma_dnn all with worker 0's.
    - Momentum and whatever else the optimizer remembers stay with the worker. Averaging and
      compression neither reset them nor exchange them. A learning-rate schedule counts every
      mini-batch, those of compression included.
    - Running statistics of batch normalisation belong to the model: they are averaged with it, and
      an ensemble's members have each their own.
    - Every worker trains on as many mini-batches of one size, however many examples it has, so that
      nobody is waited for. The average weighs models by their workers' numbers of examples, which
      is equation 1 where these are equal; ensembles weigh all models alike.

    Snapshots of the store, between two rounds, have all of a trainer, whose steps are mini-batches.
    `store.restore` comes once it is made, with the network, the optimizer and the numbers of
    workers and examples that the snapshot's job had.

    Equation 9 compares with the compressed models of the round before, so that the first round
    minimises plain cross entropy.

    Parameters
    ----------
    network
        A HybridBlock on one device, initialised, that maps inputs to class scores (batch, C), of
        the same architecture on all workers.
    data
        This worker's examples: a pair of arrays (inputs, labels), or a gluon.data.Dataset.
    optimizer, optimizer_params
        As gluon.Trainer's.
    method
        Which one, and its numbers.
    store
        mx.kv.create('p3'), without optimizer and compression.
    batch_size
        Of a worker.
    evaluation
        Examples on which errors are measured, all of them on every worker; None for none.
    seed
        Decides in which order examples come and which are relabelled, with the rank.
    on_step
        Called after each mini-batch with the loss of the one before; None for a phase's first.
    clock
        Tells seconds, for the reports.
    prefetch
        While one worker's model labels examples the next one's is on its way, so that a round takes
        less time and another model's memory. The bits are the same without it.

    Raises
    ------
    ArrayMismatch
        For a network whose output is not class scores, or data that do not fit it.
    KVStoreError
        For a store or a network that cannot be used.
    OptionError
        For s_dnn with several workers.
    ClusterError
        Where the workers' networks or methods differ.
    """

    def __init__(
        self,
        network: gluon.HybridBlock,
        data: Any,
        optimizer: Any,
        optimizer_params: Optional[Dict[str, Any]] = None,
        *,
        method: Method,
        store: Any,
        batch_size: int,
        evaluation: Any = None,
        seed: int = 0,
        on_step: Callable[[Optional[float]], None] = lambda loss: None,
        clock: Callable[[], float] = time.perf_counter,
        prefetch: bool = True,
    ) -> None:
        check_store(store)
        if not isinstance(method, Method):
            name = method if isinstance(method, str) else "ec_dnn_s"
            raise OptionError(
                f"ec_dnn: method is {method!r}; it must be a Method, such as "
                f"ec_dnn.Method({name!r}, tau=100)"
            )
        if method.name == "s_dnn" and store.num_workers > 1:
            raise OptionError(f"ec_dnn: s_dnn is for one worker; the job has {store.num_workers}")
        batch_size = whole_number("ec_dnn: batch_size", batch_size, 1)
        seed = whole_number("ec_dnn: seed", seed, 0)
        self.method = method
        self.steps = 0  # mini-batches trained on so far
        self.training_losses: Optional[np.ndarray] = None
        self._batch_size, self._clock = batch_size, clock
        self._on_step = on_step
        self._learner = Learner(network, data, optimizer, optimizer_params)
        if method.name == "ma_dnn" and self._learner.keeps_masters:
            raise OptionError(
                "ec_dnn: the optimizer's multi_precision keeps parameters of float16 in float32 as "
                "well, which the average of ma_dnn would not reach: leave it out, or the network "
                "in float32"
            )
        self._examples = self._learner.examples
        about = f"{method}, batch_size {batch_size}"
        tests = (
            None if evaluation is None
            else Examples(evaluation, "evaluation", self._learner.context)
        )  # fmt: skip
        tested = f"{about}, {'no' if tests is None else len(tests)} examples for evaluation"
        self._models = Models(network, store, method.wire, tested, prefetch)
        self._evaluation = None if tests is None else Evaluation(tests, self._learner, self._models)
        self._random = np.random.RandomState([seed, store.rank])
        self._order = Order(np.arange(len(self._examples)), batch_size, self._random)
        self._diverse = DiverseTrainingLoss(method.alpha)
        self._accelerated = AcceleratedCompressionLoss(method.beta)
        self._diverse.hybridize()
        self._accelerated.hybridize()
        self._compressed = False
        self._seconds: Dict[str, float] = {}
        self._round = self._averaged = 0
        # With ma_dnn: the local model before it was averaged.
        self._local: Optional[List[mx.nd.NDArray]] = None
        self._weight = 1.0
        if method.name == "ma_dnn":
            self._models.begin_alike()
            count = len(self._examples)
            self._weight = count / float(self._models.sum(np.array([count]))[0])
        self._within_round = False
        store.include_in_snapshots(TrainerRun(self, about, store.parts_in_snapshots()))

    def rounds(self, count: int, evaluate_every: int = 1) -> Iterator[Aggregation]:
        """Trains for so many rounds: tau local steps, aggregation, compression.

        e_dnn aggregates in the last of them alone, and before that only to measure errors.

        Parameters
        ----------
        evaluate_every
            After how many rounds errors are measured; always after the last.

        Raises
        ------
        OptionError
            For a negative count, or an evaluate_every below 1.
        ClusterError
            Where a worker does not come within the store's option `patience`, or fails.
        """
        count = whole_number("ec_dnn: count", count, 0)
        evaluate_every = whole_number("ec_dnn: evaluate_every", evaluate_every, 1)
        for left in reversed(range(count)):
            self._round += 1
            last = left == 0
            measures = last or self._round % evaluate_every == 0
            self._within_round = True
            report = self._run_round(self._evaluation is not None and measures, last)
            self._within_round = False
            yield report

    def _run_round(self, evaluates: bool, last: bool) -> Aggregation:
        self._seconds, self._averaged = {}, 0
        loss = self._train_locally()
        found: Dict[str, Any] = {}
        if self.method.name == "s_dnn" and self._evaluation is not None and evaluates:
            with self._phase("evaluate"):
                found = self._evaluation.of_one(self._evaluation.count_own())
        elif self.method.name == "ma_dnn":
            found = self._average(self._evaluation if evaluates else None)
        elif self.method.is_ensemble and (self.method.compresses or last or evaluates):
            relabels = self.method.compresses or last
            found = self._aggregate(relabels, self._evaluation if evaluates else None)
        return Aggregation(
            self._round, self.steps, loss, dict(self._seconds), averaged=self._averaged, **found
        )

    def _train_locally(self) -> float:
        """tau steps with equation 9."""
        batches = self._order.take(self.method.tau)
        targets = None
        if self._compressed and self.method.alpha > 0:
            targets = self._average_outputs(batches)
        loss = self._learner.plain_loss if targets is None else self._diverse
        with self._phase("local"):
            return self._learner.train(loss, batches, targets, self._stepped)

    def _average_outputs(self, batches: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """The average output of the compressed models for each example that comes next: the z of
        equation 9, a table (n, C), and in it the places of the mini-batches' examples."""
        examples, places = np.unique(batches, return_inverse=True)
        self._averaged = len(examples)
        total: Any = 0
        for _ in self._every_model():
            with self._phase("diversity"):
                total = total + np.exp(self._learner.outputs(self._examples, examples)[0])
        return np.asarray(total / self._models.count), places.reshape(batches.shape)

    def _average(self, evaluation: Optional[Evaluation]) -> Dict[str, Any]:
        """Equation 1."""
        self._local = self._models.copy()
        if evaluation is not None:
            with self._phase("evaluate"):
                counted = evaluation.count_own()
        with self._phase("exchange"):
            self._models.average(self._weight)
        if evaluation is None:
            return {}
        with self._phase("evaluate"):
            return evaluation.of_one(counted)

    def _aggregate(self, relabels: bool, evaluation: Optional[Evaluation]) -> Dict[str, Any]:
        """Has every worker's model in turn label some of this worker's examples."""
        # An exchange without labels, and labels that nobody trains on, only measure.
        exchanging = "exchange" if relabels else "evaluate"
        labelling = "relabel" if self.method.compresses else "evaluate"
        chosen = self._choose() if relabels else np.zeros(0, np.int64)
        outputs: List[np.ndarray] = []
        evaluated: List[np.ndarray] = []
        labels = np.zeros(0, np.int64)
        for _ in self._every_model(exchanging):
            if relabels:
                with self._phase(labelling):
                    output, labels = self._learner.outputs(self._examples, chosen)
                    outputs.append(output)
            if evaluation is not None:
                with self._phase("evaluate"):
                    evaluated.append(evaluation.outputs())
        found: Dict[str, Any] = {}
        if relabels:
            of_all = np.stack(outputs)
            outputs.clear()  # for large sets of many classes there is no room for both
            targets, found = self._relabel(of_all, labels, labelling)
        if evaluation is not None:
            with self._phase("evaluate"):
                coefficients = relabelling.even(self._models.count)
                if self.method.name == "ec_dnn_r":
                    coefficients = common_coefficients(self._models, of_all, labels)
                found.update(evaluation.of_ensemble(evaluated, coefficients))
        if relabels and self.method.compresses:
            del of_all
            self._compress(chosen, targets)
        return found

    def _choose(self) -> np.ndarray:
        """The portion of the examples to be relabelled."""
        portion = max(1, round(self.method.mu * len(self._examples)))
        return self._random.permutation(len(self._examples))[:portion]

    def _relabel(
        self, outputs: np.ndarray, labels: np.ndarray, phase: str
    ) -> Tuple[np.ndarray, Dict[str, Any]]:
        """The pseudo-labels of algorithm 2, (n, C), from outputs (K, n, C); and what is to be
        reported of them."""
        with self._phase(phase):
            coefficients = relabelling.coefficients(self.method.name, outputs, labels)
            targets = relabelling.pseudo_labels(relabelling.combine(outputs, coefficients))
            together, alone = relabelling.cross_entropies(outputs, labels)
        return targets, {
            "relabelled": len(labels),
            "ensemble_loss": together,
            "mean_loss": alone,
            "coefficients": coefficients if self.method.name == "ec_dnn_r" else None,
        }

    def _compress(self, chosen: np.ndarray, targets: np.ndarray) -> None:
        """Algorithm 2, from the latest local model."""
        places = Order(np.arange(len(chosen)), self._batch_size, self._random).take(
            self.method.compression_steps
        )
        with self._phase("compress"):
            self._learner.train(
                self._accelerated, chosen[places], (targets, places), self._stepped
            )
        self._compressed = True

    def local_model(self, make_network: Callable[[], gluon.HybridBlock]) -> gluon.HybridBlock:
        """The local model that has the smallest training loss, as a new network, on every worker.

        The loss is the cross entropy over the examples of all workers; `training_losses` then has
        it for each model. With ma_dnn local models are those before the last average.

        Parameters
        ----------
        make_network
            Makes a network of the architecture that is trained; it need not be initialised.
        """
        found, self.training_losses = best_local(self._learner, self._models, self._local)
        return copy_of(make_network, found)

    def global_model(self, make_network: Callable[[], gluon.HybridBlock]) -> Ensemble:
        """The global model, on every worker: the ensemble of all workers' models; with s_dnn and
        ma_dnn, which have one network, that alone.

        Coefficients are 1/K, with ec_dnn_r those of equation 7 over the examples of all workers.
        It takes K times a model's memory. Its outputs are probabilities, but for the negative
        coefficients that a regression may find.
        """
        if not self.method.is_ensemble:
            return Ensemble([copy_of(make_network, self._models.arrays())])
        return ensemble_of_all(
            self._learner, self._models, make_network, self.method.name == "ec_dnn_r"
        )

    def _every_model(self, phase: str = "exchange") -> Iterator[int]:
        """Models.each, with the time that passes in waiting."""
        turns = self._models.each()
        while True:
            with self._phase(phase):
                rank = next(turns, None)
            if rank is None:
                return
            yield rank

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        begun = self._clock()
        yield
        self._models.wait()  # and not for a model that is still on its way
        self._seconds[name] = self._seconds.get(name, 0.0) + self._clock() - begun

    def _stepped(self, loss: Optional[float]) -> None:
        self.steps += 1
        self._on_step(loss)
