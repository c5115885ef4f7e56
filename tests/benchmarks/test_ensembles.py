"""Simulated ensembles train as ec_dnn.Trainer does, and the tables say what they found."""
from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from ensembles import language_names, plan, tasks
from ensembles.language_names import language_names as make_names
from ensembles.noisy_digits import NOISE, TRAIN, noisy_digits
from ensembles.picture import draw
from ensembles.plan import METHODS, Choice, one, taus, wanted
from ensembles.tables import Tables, numbers
from ensembles.training import Training
from kvstore_ext import ec_dnn
from mxnet.gluon import nn
from simulations.ec_dnn import SimulatedStore, run
from simulations.ensembles import Workers, make_layers
from simulations.stacked_networks import StackedNetworks
from trainings import complete

from benchmarks.figures import style

WORKERS, FEATURES, HIDDEN, CLASSES, BATCH, ROUNDS, SEED = 3, 6, 5, 4, 4, 3, 7
RATES = {"base_lr": 0.3, "step": 9, "factor": 0.5}


def examples() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(0)
    return random.normal(size=(36, FEATURES)).astype(np.float32), random.randint(0, CLASSES, 36)


def trained_by_trainer(method: ec_dnn.Method, layers: list[np.ndarray], parts: np.ndarray
                       ) -> list[list[np.ndarray]]:
    """The parameters of each worker."""
    inputs, labels = examples()

    def work(store: SimulatedStore) -> list[np.ndarray]:
        network = nn.HybridSequential()
        network.add(nn.Dense(HIDDEN, activation="relu", in_units=FEATURES))
        network.add(nn.Dense(CLASSES, in_units=HIDDEN))
        network.initialize()
        parameters = list(network.collect_params().values())
        for parameter, layer in zip(parameters, layers):
            value = layer[store.rank]
            parameter.set_data(mx.nd.array(value.T if len(value) > 1 else value[0]))
        optimizer = mx.optimizer.SGD(
            learning_rate=0.3, momentum=0.9, wd=0.01,
            lr_scheduler=mx.lr_scheduler.FactorScheduler(**RATES))
        part = parts[store.rank]
        trainer = ec_dnn.Trainer(
            network, (inputs[part], labels[part]), optimizer, method=method, store=store,
            batch_size=BATCH, seed=SEED)
        list(trainer.rounds(ROUNDS))
        return [parameter.data().asnumpy() for parameter in parameters]

    return run(WORKERS, work)


@pytest.mark.parametrize("data", ["partitioned", "shared"])
@pytest.mark.parametrize("name", ["e_dnn", "ma_dnn", "ec_dnn_s", "ec_dnn_r", "ec_dnn_m"])
def test_parameters_are_those_of_the_trainer(name: str, data: str) -> None:
    method = ec_dnn.Method(name, tau=5, p=20, mu=0.8, training_steps=21)
    everything = np.arange(36)
    parts = np.stack([everything if data == "shared" else everything[rank::WORKERS]
                      for rank in range(WORKERS)])
    layers = make_layers(1, WORKERS, FEATURES, HIDDEN, CLASSES)
    expected = trained_by_trainer(method, layers, parts)
    workers = Workers(
        StackedNetworks(layers, 0.9, 0.01), examples(), parts, method, BATCH,
        mx.lr_scheduler.FactorScheduler(**RATES), SEED)
    rounds = list(workers.rounds(ROUNDS))
    assert workers.steps == ROUNDS * (5 + method.compression_steps)
    for rank, parameters in enumerate(expected):
        for layer, value in zip(workers.networks.layers, parameters):
            found = layer[rank].T if value.ndim == 2 else layer[rank][0]
            np.testing.assert_allclose(found, value, rtol=2e-3, atol=2e-4)
    for found in rounds:
        assert (found.losses is not None) == method.compresses
        if found.losses is not None:
            assert found.losses.shape == (WORKERS, 2)
            assert (found.losses[:, 0] <= found.losses[:, 1] + 1e-6).all()


def test_labels_are_wrong_in_the_training_part_alone() -> None:
    data, again = noisy_digits(3), noisy_digits(3)
    np.testing.assert_array_equal(data.train[1], again.train[1])
    sizes = [len(labels) for _, labels in (data.train, data.validation, data.test)]
    assert sizes[0] == TRAIN
    assert sum(sizes) == 1797
    distances = np.square(data.test[0][:, None] - data.train[0][None]).sum(axis=2)
    wrong = np.mean(data.train[1][distances.argmin(axis=1)] != data.test[1])
    assert NOISE - 0.1 < wrong < NOISE + 0.15  # by the nearest neighbour's label
    np.testing.assert_allclose(data.train[0].mean(axis=0), 0, atol=1e-5)


def test_no_name_is_in_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("TRAIN", 300), ("VALIDATION", 200), ("TEST", 200)):
        monkeypatch.setattr(language_names, name, size)
    data = make_names(0, ("es", "gl"))
    rows = [{tuple(row) for row in np.round(inputs, 3)} for inputs, _ in
            (data.train, data.validation, data.test)]
    assert [len(labels) for _, labels in (data.train, data.validation, data.test)] == [
        300, 200, 200]
    assert len(rows[0] & rows[1]) + len(rows[0] & rows[2]) + len(rows[1] & rows[2]) <= 5
    assert set(data.test[1]) == {0, 1}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits that workers share, and 200 mini-batches."""
    kinds = (("shared", 4), ("shared", 8))
    monkeypatch.setitem(tasks.TASKS, "digits", replace(
        tasks.TASKS["digits"], steps=200, kinds=kinds))


def test_a_training_says_what_it_comes_to(short: None) -> None:
    found = Training("digits", "shared", "ec_dnn_s", 4, 30, 0).run()
    # A round is 30 local mini-batches, then 20 of compression, 10 % of the 200.
    assert [row[0] for row in found["curve"]] == [30, 80, 130, 180]
    assert len(found["jensen"]) == 4 * 4
    assert all(together <= alone + 1e-6 for together, alone in found["jensen"])
    assert found["local"][1] < 0.8
    assert found["curve"][-1][3] < 0.8
    average = Training("digits", "shared", "ma_dnn", 4, 20, 0).run()
    assert average["global"][1] == average["curve"][-1][1] == average["curve"][-1][3]
    assert len(average["curve"]) == 10
    assert average["curve"][-1][0] == 200
    # Which has one local step only: case 1 of figure 6.
    assert Training("digits", "shared", "ec_dnn_s", 4, 1, 0).rounds == 10


def test_what_an_older_benchmark_has_found_is_not_taken(tmp_path: Path) -> None:
    training = Training("digits", "shared", "ec_dnn_s", 4, 30, 0)
    file, now = tmp_path / "ec_dnn.jsonl", asdict(training)
    older = {name: value for name, value in now.items() if name != "measured"}
    torn = '{"training": {"task": "dig'
    file.write_text("".join(
        json.dumps({"training": written, "found": {"of": of}}) + "\n"
        for written, of in ((now, "now"), (older, "before"))
    ) + torn)
    assert complete(file, Training, [training]) == {training: {"of": "now"}}


def found(last: float, local: float, validation: float) -> dict[str, Any]:
    return {
        "global": [validation, last], "local": [0.5, local], "training": 0.25,
        "curve": [[20, 0.4, 0.5, 0.45], [60, last, 0.4, 0.3]], "jensen": [[0.5, 0.6]],
    }


@pytest.fixture
def results(short: None) -> plan.Results:
    """In which MA-DNN's first tau is best on the validation part, and its second on the test."""
    made = {}
    for training in wanted(["digits"], [1, 2, 3], ["shared"]):
        more = 0.01 * training.seed
        if training.method == "ma_dnn":
            first = training.tau == taus("digits", "ma_dnn")[0]
            made[training] = found((0.3 if first else 0.2) + more, 0.35, 0.1 + (not first))
        elif training.method == "e_dnn":
            made[training] = found(0.25 + more, 0.3, 0.1)
        else:
            made[training] = found(0.2 + 2 * more, 0.3 - 0.01 * training.seed, 0.1)
    return made


def row(lines: list[str], name: str) -> list[str]:
    line, = [line for line in lines if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_tables_have_errors_differences_and_what_aggregation_does(results: plan.Results) -> None:
    lines = list(Tables(results, "digits", [1, 2, 3]).lines(["shared", "partitioned"]))
    assert row(lines, "MA-DNN, G")[:2] == ["32.00 ± 2.48", "20"]
    assert row(lines, "EC-DNN-R, G")[0] == "24.00 ± 4.97"
    assert row(lines, "E-DNN, L")[:2] == ["30.00 ± 0.00", "-"]
    assert row(lines, "EC-DNN-S less E-DNN, G")[0] == "-3.00 ± 2.48"
    assert row(lines, "EC-DNN-S less MA-DNN, L")[0] == "-7.00 ± 2.48"
    assert row(lines, "case 2: alpha 0")[0] == "24.00 ± 4.97"
    text = "\n".join(lines)
    assert "- MA-DNN's global model was worse than the mean of the local ones at 0 % of 24" in text
    assert "above the mean of the models' 0 times of 18 " in text
    # Over the curve's two rounds the ensemble's mean is 32 %, before 45 % and after 37.5 %.
    assert "- K = 4: local models of EC-DNN-S err +13.00 ± 2.48 points more" in text
    assert "before compression, +5.50 ± 2.48 after it" in text
    assert "MA-DNN's 32.00 after 60, E-DNN's 27.00 after 60, EC-DNN-S's 24.00 after 60" in text
    assert row(list(numbers(results)), "beta")[0] == "0.4: 10.00, 1: 10.00"


def test_what_is_lowest_before_the_end_is_not_of_the_end(results: plan.Results) -> None:
    for training, said in results.items():
        said["curve"][-1][0] = 200 - training.options.compression_steps
    lines = list(Tables(results, "digits", [1, 2, 3]).lowest("shared"))
    # With K = 4 and 8. A compression of 40 mini-batches, 20 %, follows what EC-DNN-S has last.
    assert len(lines) == 2
    for line in lines:
        assert "MA-DNN's 40.00 after 20, E-DNN's 40.00 after 20, EC-DNN-S's 24.00 after 160" in line


def test_trainings_are_as_long_and_tau_is_chosen_without_the_test_part(
    results: plan.Results
) -> None:
    assert Choice(results, [1, 2, 3]).tau("digits", "shared", "ma_dnn", 4) == 20
    assert set(METHODS) == set(plan.AGGREGATIONS)
    chosen = one("digits", "shared", "ec_dnn_s", 4, 2, 1)
    assert (chosen.p, chosen.mu) == (plan.CHOSEN["p"], plan.CHOSEN["mu"])
    # Compression included, all methods train on as many mini-batches.
    for training in wanted(["digits"], [1], ["shared"]):
        length = training.options.tau + training.options.compression_steps
        assert training.rounds * length == pytest.approx(200, abs=10)


def test_the_picture_has_all_methods_tau_and_cases(
    results: plan.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: list[Any] = []
    monkeypatch.setattr(style, "save", lambda picture, file: pictures.append(picture))
    draw(results, "digits", [1, 2, 3], tmp_path / "ec-dnn.svg")
    four, eight, histogram, tau, cases, _ = pictures[0].axes
    each = [f"{METHODS[method]}, {which}" for method in ("ec_dnn_s", "e_dnn", "ma_dnn")
            for which in ("global", "local")]
    for place in (four, eight):
        assert [line.get_label() for line in place.lines] == each
        assert len({tuple(line.get_ydata()) for line in place.lines}) > 2
    assert sum(bar.get_height() for bar in histogram.patches) > 0
    names = [name for name, _ in Tables(results, "digits", [1, 2, 3]).variants()]
    assert [line.get_label() for place in (tau, cases) for line in place.lines] == names
