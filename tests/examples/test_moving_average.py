"""--ema: the average is TensorFlow's, stands in for the parameters, and is saved and evaluated."""
from __future__ import annotations

import re
from pathlib import Path

import datasets
import mxnet as mx
import numpy as np
import pytest
from gluon_models import get_model
from moving_average import MovingAverage
from mxnet import autograd, gluon

from tests.support.paths import EXAMPLES
from tests.support.processes import run_python
from tests.support.results import assert_same_bits, parameters_of

TRAIN_IMAGE = EXAMPLES / "train_image.py"
DEVICES = [mx.cpu(0), mx.cpu(1)]


def network() -> gluon.nn.HybridSequential:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.BatchNorm(in_channels=3))
    net.initialize(mx.init.Xavier(), ctx=DEVICES)
    return net


def values(net: gluon.Block, device: int = 0) -> list[np.ndarray]:
    return [p.list_data()[device].asnumpy() for p in net.collect_params().values()]


def test_the_average_is_that_of_the_formula_and_steps_aside() -> None:
    net = network()
    average = MovingAverage(net, decay=0.3)
    expected = values(net)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore="device")
    for step in range(1, 4):
        with autograd.record():
            losses = [net(mx.nd.random.uniform(shape=(5, 4), ctx=device)).square().sum()
                      for device in DEVICES]
        autograd.backward(losses)
        trainer.step(10)
        average.update()
        decay = min(0.3, (1 + step) / (10 + step))
        expected = [decay * old + (1 - decay) * new for old, new in zip(expected, values(net))]
    assert decay == 0.3  # which the formula has reached
    before = [values(net, device) for device in range(2)]
    with average.in_place():
        for device in range(2):
            for found, of_formula in zip(values(net, device), expected):
                np.testing.assert_allclose(found, of_formula, rtol=1e-5, atol=1e-6)
    for device in range(2):
        assert all(map(np.array_equal, values(net, device), before[device]))


def test_a_training_continued_goes_on_with_its_decay() -> None:
    net = network()
    average = MovingAverage(net, decay=0.9, steps=1000)
    begun = values(net)
    for parameter in net.collect_params().values():
        for array in parameter.list_data():
            array[:] = 0
    average.update()
    with average.in_place():
        for found, before in zip(values(net), begun):
            np.testing.assert_allclose(found, 0.9 * before, rtol=1e-6)


def test_the_average_is_evaluated_saved_and_resumed(tmp_path: Path) -> None:
    flags = ["--kv-store", "local", "--ema", 0.98, "--checkpoint-dir"]
    whole = run_python(TRAIN_IMAGE, *flags, tmp_path / "whole", "--epochs", 2, fork=True).stdout
    assert re.search(r"waiting +averaged$", whole.splitlines()[1])
    row = whole.splitlines()[3].split()
    printed = re.findall(r"accuracy of the averaged parameters (\d\.\d{4})$", whole, re.MULTILINE)
    assert printed == [row[6]]
    saved = tmp_path / "whole" / "epoch-0002" / "averaged"
    net = get_model("lenet", classes=10)
    net.load_parameters(str(saved))
    images, labels = map(np.concatenate, zip(*datasets.digits(0).validation(360)))
    found = net(mx.nd.array(images)).asnumpy().argmax(axis=1)
    assert f"{(found == labels).mean():.4f}" == row[6]
    assert row[6] != row[3]  # the parameters' own

    run_python(TRAIN_IMAGE, *flags, tmp_path / "parts", "--epochs", 1, fork=True)
    run_python(TRAIN_IMAGE, *flags, tmp_path / "parts", "--epochs", 2, "--resume", fork=True)
    resumed = tmp_path / "parts" / "epoch-0002" / "averaged"
    assert_same_bits(parameters_of(resumed), parameters_of(saved))


@pytest.mark.parametrize(("flags", "message"), [
    (["--ema", "1"], "argument --ema: 1 must be above 0 and below 1"),
    (["--ema", "0.99", "--kv-store", "slim_dp"], "--ema 0.99 needs workers with the same param")])
def test_an_average_that_cannot_be_is_refused(flags: list[str], message: str) -> None:
    ended = run_python(TRAIN_IMAGE, *flags, status=None, fork=True)
    errors = ended.stderr
    assert ended.returncode in (1, 2)
    assert message in errors
    assert "Traceback" not in errors
