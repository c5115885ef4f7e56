"""The pieces of ec_dnn: coefficients, pseudo-labels, losses, the order of examples, ensembles."""
from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import ec_dnn
from kvstore_ext.ec_dnn import relabelling
from kvstore_ext.ec_dnn.ensemble import copy_of
from kvstore_ext.ec_dnn.final import best_local
from kvstore_ext.ec_dnn.local_data import Order
from kvstore_ext.errors import ArrayMismatch, OptionError
from mxnet import autograd
from mxnet.gluon import HybridBlock, nn

from tests.support.reference.ec_dnn import coefficients, d_cross_entropy, d_distance, softmax

MODELS, EXAMPLES, CLASSES = 4, 50, 5


def make_outputs(seed: int, models: int = MODELS, scale: float = 2.0) -> np.ndarray:
    scores = np.random.RandomState(seed).normal(0, scale, (models, EXAMPLES, CLASSES))
    return relabelling.log_softmax(scores.astype(np.float32))


def make_labels(seed: int) -> np.ndarray:
    return np.random.RandomState(seed + 1000).randint(0, CLASSES, EXAMPLES)


def test_log_softmax_of_large_scores() -> None:
    found = relabelling.log_softmax(np.array([[1000.0, 0.0], [-1000.0, -1000.0]], np.float32))
    np.testing.assert_allclose(found, [[0, -1000], [-np.log(2)] * 2], rtol=1e-6)


@pytest.mark.parametrize("method", ["ec_dnn_r", "ec_dnn_m"])
def test_coefficients_are_the_papers(method: str) -> None:
    outputs, labels = make_outputs(0), make_labels(0)
    expected = coefficients(method, np.exp(outputs.astype(np.float64)), np.eye(CLASSES)[labels])
    if method == "ec_dnn_r":
        found = np.repeat(relabelling.regression(outputs, labels)[:, None], EXAMPLES, axis=1)
    else:
        found = relabelling.margin(outputs, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_margins_that_are_all_zero_give_even_coefficients() -> None:
    outputs = np.log(np.array([[[0.2, 0.8]], [[0.5, 0.5]]]))
    assert (relabelling.margin(outputs, np.array([0])) == 0.5).all()
    np.testing.assert_allclose(relabelling.margin(outputs, np.array([1]))[:, 0], [1, 0])


def test_normal_equations_of_workers_add_up_to_the_regression_over_all() -> None:
    parts = [(make_outputs(seed), make_labels(seed)) for seed in range(3)]
    total = sum(relabelling.normal_equations(*part) for part in parts)
    together = relabelling.regression(
        np.concatenate([outputs for outputs, _ in parts], axis=1),
        np.concatenate([labels for _, labels in parts]),
    )
    np.testing.assert_allclose(relabelling.solve(total), together, rtol=1e-8)


def test_pseudo_labels_are_clipped_and_renormalised() -> None:
    found = relabelling.pseudo_labels(np.array([[-0.5, 0.5, 1.0], [-1.0, 0.0, -0.2]]))
    np.testing.assert_allclose(found, [[0, 1 / 3, 2 / 3], [1 / 3] * 3], rtol=1e-6)


@given(seed=st.integers(0, 10_000), models=st.integers(1, 8), scale=st.floats(0, 200))
def test_jensens_bound_holds_for_any_models(seed: int, models: int, scale: float) -> None:
    together, alone = relabelling.cross_entropies(
        make_outputs(seed, models, scale), make_labels(seed)
    )
    assert together <= alone * (1 + 1e-12) + 1e-12


def gradient(loss: HybridBlock, scores: np.ndarray, *others: np.ndarray) -> np.ndarray:
    array = mx.nd.array(scores, dtype="float32")
    array.attach_grad()
    with autograd.record():
        value = loss(array, *(mx.nd.array(other) for other in others))
    assert value.shape == (len(scores),)
    value.backward()
    return array.grad.asnumpy()


def test_losses_have_the_gradients_of_equations_9_and_10() -> None:
    random = np.random.RandomState(0)
    scores, labels = random.normal(0, 1, (EXAMPLES, CLASSES)), make_labels(0)
    other = softmax(random.normal(0, 1, (EXAMPLES, CLASSES)))
    f, true = softmax(scores), np.eye(CLASSES)[labels]
    diverse = gradient(ec_dnn.DiverseTrainingLoss(0.7), scores, labels, other)
    expected = d_cross_entropy(f, true) - 0.7 * d_distance(f, other)
    np.testing.assert_allclose(diverse, expected, rtol=1e-4, atol=1e-5)
    compressed = gradient(ec_dnn.AcceleratedCompressionLoss(0.4), scores, labels, other)
    expected = d_cross_entropy(f, true) + 0.4 * d_cross_entropy(f, other)
    np.testing.assert_allclose(compressed, expected, rtol=1e-4, atol=1e-5)


def test_the_diverse_loss_has_a_gradient_where_outputs_meet_the_average() -> None:
    found = gradient(
        ec_dnn.DiverseTrainingLoss(1.0), np.zeros((1, 2)), np.zeros(1), np.full((1, 2), 0.5)
    )
    np.testing.assert_allclose(found, [[-0.5, 0.5]], rtol=1e-5)


@given(size=st.integers(1, 40), batch=st.integers(1, 17), calls=st.integers(1, 6))
def test_every_example_comes_once_before_any_comes_again(size: int, batch: int, calls: int) -> None:
    order = Order(np.arange(100, 100 + size), batch, np.random.RandomState(0))
    stream = np.concatenate([order.take(2).ravel() for _ in range(calls)])
    assert len(stream) == 2 * batch * calls
    for begin in range(0, len(stream) - size + 1, size):
        assert sorted(stream[begin : begin + size]) == list(range(100, 100 + size))


def make_network() -> HybridBlock:
    network = nn.HybridSequential()
    network.add(nn.Dense(7, activation="relu"), nn.BatchNorm(), nn.Dense(CLASSES))
    return network


@pytest.mark.parametrize("weights", [None, np.array([0.7, 0.5, -0.2], np.float32)])
def test_ensembles_are_saved_loaded_and_hybridized(tmp_path: Path, weights: np.ndarray) -> None:
    inputs = mx.nd.random.normal(shape=(6, 3))
    members = [make_network() for _ in range(3)]
    for member in members:
        member.initialize(mx.init.Normal(0.5))
        member(inputs)
    ensemble = ec_dnn.Ensemble(members, weights)
    expected = sum(
        (1 / 3 if weights is None else weights[k]) * softmax(member(inputs).asnumpy())
        for k, member in enumerate(members)
    )
    file = str(tmp_path / "ensemble")
    ensemble.save_parameters(file)
    loaded = ec_dnn.Ensemble([make_network() for _ in range(3)])
    loaded.load_parameters(file)
    loaded.hybridize()
    ensemble.hybridize()
    ensemble(inputs)
    ensemble.export(file)
    exported = mx.gluon.SymbolBlock.imports(f"{file}-symbol.json", ["data"], f"{file}-0000.params")
    blocks: list[Callable[[mx.nd.NDArray], mx.nd.NDArray]] = [ensemble, loaded, exported]
    for block in blocks:
        np.testing.assert_allclose(block(inputs).asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_an_ensemble_is_where_its_members_are(tmp_path: Path) -> None:
    device = mx.cpu(1)
    inputs = mx.nd.ones((2, 3), ctx=device)
    members = [make_network() for _ in range(2)]
    for member in members:
        member.initialize(ctx=device)
        member(inputs)
    ensemble = ec_dnn.Ensemble(members)
    expected = ensemble(inputs).asnumpy()
    ensemble.save_parameters(str(tmp_path / "ensemble"))
    loaded = ec_dnn.Ensemble([make_network() for _ in range(2)])
    loaded.load_parameters(str(tmp_path / "ensemble"), ctx=device)
    np.testing.assert_array_equal(loaded(inputs).asnumpy(), expected)


def test_a_copy_has_the_parameters_and_refuses_another_architecture() -> None:
    network = make_network()
    network.initialize()
    inputs = mx.nd.ones((2, 3))
    expected = network(inputs).asnumpy()
    values = [parameter.data() for parameter in network.collect_params().values()]
    np.testing.assert_array_equal(copy_of(make_network, values)(inputs).asnumpy(), expected)
    with pytest.raises(ValueError, match=r"2 parameters.*has 8"):
        copy_of(lambda: nn.Dense(4), values)
    wider = nn.Dense(9, in_units=3)
    with pytest.raises(ValueError, match=r"\(9, 3\).*\(7, 3\)"):
        copy_of(lambda: wider, values[:2])


def test_compression_takes_a_percentage_rounded_up_of_tau_or_of_the_training() -> None:
    for tau, p, steps in ((100, 10, 10), (1, 10, 1), (16, 10, 2), (4000, 5, 200), (70, 10, 7)):
        assert ec_dnn.Method("ec_dnn_s", tau=tau, p=p).compression_steps == steps
    for tau, p, training, steps in ((1, 10, 960, 96), (4000, 10, 30_001, 3001), (9, 5, 1, 1)):
        method = ec_dnn.Method("ec_dnn_s", tau=tau, p=p, training_steps=training)
        assert method.compression_steps == steps
    assert ec_dnn.Method("ma_dnn", tau=100).compression_steps == 0
    defaults = ec_dnn.Method("ec_dnn_m", tau=1)
    assert (defaults.p, defaults.mu, defaults.alpha, defaults.beta) == (10, 0.7, 0.6, 0.4)


@pytest.mark.parametrize("method", ["s_dnn", "ma_dnn", "e_dnn"])
def test_momentum_and_schedules_go_on_through_aggregations(method: str) -> None:
    """Alone, averaging or ensembling changes nothing: the bits are those of one Gluon loop."""
    inputs = np.random.RandomState(0).normal(size=(30, 3)).astype(np.float32)
    labels = np.arange(30) % CLASSES
    networks = [nn.Dense(CLASSES, in_units=3) for _ in range(2)]
    for network in networks:
        network.initialize()
        network.weight.set_data(mx.nd.array(np.eye(CLASSES, 3)))
    schedules = [mx.lr_scheduler.FactorScheduler(4, 0.5, base_lr=0.5) for _ in networks]
    options = [{"momentum": 0.9, "learning_rate": 0.5, "lr_scheduler": s} for s in schedules]
    store = mx.kv.create("p3")
    trainer = ec_dnn.Trainer(
        networks[0], (inputs, labels), "sgd", options[0], method=ec_dnn.Method(method, tau=3),
        store=store, batch_size=7,
    )
    assert [report.steps for report in trainer.rounds(4)] == [3, 6, 9, 12]
    store.close()
    plain = mx.gluon.Trainer(networks[1].collect_params(), "sgd", options[1], kvstore=None)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for batch in Order(np.arange(30), 7, np.random.RandomState([0, 0])).take(12):
        with autograd.record():
            value = loss(networks[1](mx.nd.array(inputs[batch])), mx.nd.array(labels[batch]))
        value.backward()
        plain.step(7)
    results = (network.weight.data().asnumpy() for network in networks)
    np.testing.assert_array_equal(*results)


class Shift(HybridBlock):  # MXNet's CPU has no matrix products of float16
    """Adds a number to each class's score."""

    def __init__(self) -> None:
        super().__init__()
        self.by = self.params.get("by", shape=(1, CLASSES))

    def hybrid_forward(self, F: Any, x: Any, by: Any) -> Any:
        return F.broadcast_add(x, by)


def test_what_would_train_wrongly_in_half_precision_is_refused() -> None:
    """Averages would not reach the optimizer's own copies, and arrays come as float32."""
    inputs, labels = np.eye(CLASSES, dtype=np.float16), np.arange(CLASSES)
    network = Shift()
    network.cast("float16")
    network.initialize()
    pairs = mx.gluon.data.ArrayDataset(inputs, labels.astype(np.float32))
    store = mx.kv.create("p3")
    options = {"learning_rate": 0.1, "multi_precision": True}
    alike = {"store": store, "batch_size": 2}
    averaging, alone = ec_dnn.Method("ma_dnn", tau=1), ec_dnn.Method("s_dnn", tau=1)
    with pytest.raises(OptionError, match="multi_precision keeps parameters of float16"):
        ec_dnn.Trainer(network, pairs, "sgd", options, method=averaging, **alike)
    with pytest.raises(ArrayMismatch, match=r"inputs of shape \(5, 5\) and type float32"):
        ec_dnn.Trainer(network, (inputs, labels), "sgd", options, method=alone, **alike)
    trainer = ec_dnn.Trainer(network, pairs, "sgd", options, method=alone, **alike)
    assert [report.steps for report in trainer.rounds(1)] == [1]
    store.close()


class Late(mx.operator.CustomOp):
    """Gives its input, once somebody says so."""

    said = threading.Event()
    waited_in_vain = False

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        Late.waited_in_vain |= not Late.said.wait(30)
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("late")
class LateProperties(mx.operator.CustomOpProp):
    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Late:
        return Late()


class LateStore:
    """Worker 0's of two. Worker 1's model is worker 0's, and comes when Late is told to."""

    rank, num_workers = 0, 2

    def __init__(self) -> None:
        self.asked: list[int] = []

    def include_in_snapshots(self, part: Any) -> None:
        pass

    def parts_in_snapshots(self) -> dict[str, Any]:
        return {}

    def broadcast_from(self, root: int, key: str, value: mx.nd.NDArray, priority: int = 0) -> None:
        if " model " not in key:
            return
        self.asked.append(root)
        if root == 1:
            mx.nd.Custom(value, op_type="late").copyto(value)


@pytest.mark.parametrize("prefetch", [True, False])
def test_a_model_labels_while_the_next_one_is_on_its_way(prefetch: bool) -> None:
    store, network = LateStore(), nn.Dense(CLASSES, in_units=3)
    network.initialize()
    trainer = ec_dnn.Trainer(
        network, (np.ones((8, 3), np.float32), np.arange(8) % CLASSES), "sgd", batch_size=2,
        method=ec_dnn.Method("ec_dnn_s", tau=1, alpha=0), store=store, prefetch=prefetch,
    )
    asked_when_labelling = []

    def label(*_: Any) -> None:
        if not autograd.is_training():
            asked_when_labelling.append(list(store.asked))
            Late.said.set()

    network.register_forward_hook(label)
    Late.said.clear()
    next(trainer.rounds(1))
    assert not Late.waited_in_vain
    assert asked_when_labelling == ([[0, 1], [0, 1]] if prefetch else [[0], [0, 1]])


class TwoModels:
    """As `Models` of two workers, of which `outputs` are each one's; `best` is whose was sent."""

    count = 2

    def __init__(self, outputs: list[np.ndarray]) -> None:
        self.examples = range(len(outputs[0]))
        self.best = -1
        self._outputs = outputs

    def copy(self) -> list:
        return []

    def put(self, _: list) -> None:
        pass

    def each(self, _: list) -> Iterator[int]:
        for rank in range(self.count):
            self._rank = rank
            yield rank

    def outputs_of_all(self) -> tuple[np.ndarray, np.ndarray]:
        return self._outputs[self._rank], np.zeros(len(self.examples), np.int64)

    def sum(self, own: np.ndarray) -> np.ndarray:
        return own

    def broadcast(self, root: int, _: list) -> None:
        self.best = root


@pytest.mark.parametrize("overflows", [np.nan, -np.inf])
def test_a_model_that_overflows_is_not_the_best(overflows: float) -> None:
    fine = np.full((3, 2), -0.7)
    found = TwoModels([np.where(np.eye(3, 2) > 0, overflows, fine), fine])
    _, losses = best_local(found, found, None)  # type: ignore[arg-type]
    assert found.best == 1
    assert losses[1] == pytest.approx(0.7)
