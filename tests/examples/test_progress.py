"""What the examples show while they run: waiting for communication, and what is not installed."""
from __future__ import annotations

import ctypes
import io
import re
import sys
import threading
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import mxnet as mx
import progress
import pytest
import waiting
from mxnet import autograd, gluon
from mxnet.base import _LIB, check_call

from tests.support.paths import EXAMPLES
from tests.support.processes import LIMIT, run_python


@pytest.mark.parametrize(
    ("idle_from", "came", "used", "expected"),
    [
        (1, [0, 0], [2, 3], 0),  # all had come before
        (1, [4, 0], [5, 6], 3),  # the first one is late
        (1, [2, 5], [4, 7], 2),  # each of them is, the second after the first was used
        (1, [2, 3], [4, 7], 1),  # the second comes while the first layer computes
        (1, [2, 7, 0], [6, 9, 4], 1),  # the third is used first, and computes while the first comes
    ],
)
def test_a_device_waits_while_it_has_nothing_to_compute(
    idle_from: float, came: list[float], used: list[float], expected: float
) -> None:
    assert waiting.waited(idle_from, came, used) == expected


def hold(array: mx.nd.NDArray, release: threading.Event) -> object:
    """Has whatever reads the array from now on wait for `release`, as for a parameter that has not
    come. What it returns has to live until then."""
    def wait(*_: object) -> None:
        release.wait(LIMIT)

    function = waiting._FUNCTION(wait)
    written = (ctypes.c_void_p * 1)(array.handle)
    context, thread = (ctypes.c_int * 2)(1, 0), ctypes.c_int(3)
    check_call(_LIB.MXEnginePushSyncND(
        function, None, None, ctypes.byref(context), None, 0, written, 1, ctypes.byref(thread), 0,
        b"Hold"))
    return function


def test_a_watch_sees_a_forward_pass_that_waits_for_its_second_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "EVERY", 1)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, in_units=4), gluon.nn.Dense(4, in_units=4, use_bias=False))
    net.initialize()
    parameters = [net[0].weight, net[0].bias, net[1].weight]
    watch = waiting.Watch(SimpleNamespace(_params=parameters, _update_on_kvstore=True), workers=2)
    inputs, release = mx.nd.ones((2, 4)), threading.Event()
    with watch.forward(), autograd.record():
        loss = net(inputs).sum()
    with watch.backward():
        loss.backward()
    with watch.update():
        held = hold(net[1].weight.data(), release)
    with watch.forward(), autograd.record():
        loss = net(inputs).sum()
    with watch.backward():
        loss.backward()
    marks = watch._open[0]
    deadline = time.monotonic() + LIMIT
    try:
        while marks._noted() < 7:  # the second layer's weight has not come
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert watch.share() is None
        time.sleep(0.05)
        assert marks._noted() == 7
    finally:
        release.set()
        mx.nd.waitall()
    assert held
    assert marks.complete
    assert 0.05 <= marks.waited() < marks.seconds()
    assert watch.share() == marks.waited() / marks.seconds()
    watch.begin()
    assert watch.share() is None


class Terminal(io.StringIO):
    """What a process writes errors to, which may be a terminal."""

    def __init__(self, is_one: bool) -> None:
        super().__init__()
        self.isatty = lambda: is_one


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("asked", ["auto", "bar", "lines"])
def test_a_terminal_gets_a_bar_and_a_log_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_one: bool, asked: str
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(is_one))
    for times in ("LINES_EVERY", "BAR_EVERY"):
        monkeypatch.setattr(progress, times, 0)
    shows = progress.Progress(
        Namespace(progress=asked, tensorboard=None), shown=True, epochs=range(1, 3), steps=2,
        samples=8, store=SimpleNamespace(rank=0), waiting_share=lambda: 0.25)
    for epoch in (1, 2):
        shows.begin_epoch(epoch)
        for loss in (None, 1.5):
            shows.step(loss)
    shows.end()
    bar, lines = sys.stderr.getvalue(), capsys.readouterr().out.splitlines()
    if asked == "bar" or (asked == "auto" and is_one):
        assert re.search(r"\repoch 2/2: 100% .* 4/4 steps, .* left, loss 1\.5000, \d+ samples/s, "
                         "25% waiting", bar)
        assert lines == []
    else:
        assert bar == ""
        assert re.fullmatch(r" +2  2/2 steps, loss 1\.5000, \d+ samples/s, 25% waiting", lines[-1])
        assert len(lines) == 4


@pytest.mark.parametrize(
    ("epochs", "epoch", "done", "bar", "line"),
    [
        (range(2, 4), 2, 3, "epoch 2/3:  50% .* 4/8 steps", " +2  4/4 steps"),  # within an epoch
        (range(1, 4), 3, 0, "epoch 3/3:  75% .* 9/12 steps", " +3  1/4 steps"),  # between two
    ],
)
@pytest.mark.parametrize("asked", ["bar", "lines"])
def test_steps_of_an_interrupted_run_are_shown_and_count_for_no_speed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: str,
    epochs: range,
    epoch: int,
    done: int,
    bar: str,
    line: str,
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(is_one=True))
    for times in ("LINES_EVERY", "BAR_EVERY"):
        monkeypatch.setattr(progress, times, 0)
    clock = iter((0, 0, 2, 2))  # when it is made, when its epoch begins, and at the step
    monkeypatch.setattr(progress, "time", SimpleNamespace(time=lambda: next(clock)))
    shows = progress.Progress(
        Namespace(progress=asked, tensorboard=None), shown=True, epochs=epochs, steps=4, samples=8,
        store=SimpleNamespace(rank=0))
    shows.begin_epoch(epoch, done)
    shows.step(1.5)
    shows.end()
    speed = r"loss 1\.5000, 4 samples/s"  # of a step in 2 s
    if asked == "bar":
        assert re.search(rf"\r{bar}, .* left, {speed}", sys.stderr.getvalue())
    else:
        assert re.search(f"^{line}, {speed}$", capsys.readouterr().out)


def test_scalars_of_a_step_are_without_what_was_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Bytes without those of the initial parameters, zeros as a share of what is new."""
    monkeypatch.setattr(progress, "SCALARS_EVERY", 0)
    sent = iter([1100, 1200, 1350])
    zeros = iter([{"large": (10, 100)}, {"large": (60, 200), "small": (0, 50)},
                  {"large": (60, 200), "small": (10, 100)}])
    store = SimpleNamespace(rank=0, stats=lambda: {
        "sent": {"server": next(sent)}, "received": {"server": 0}, "ratio": 1.0,
        "zero_counts": next(zeros)})
    shows = progress.Progress(
        Namespace(progress="lines", tensorboard=str(tmp_path)), shown=False, epochs=range(1, 2),
        steps=3, samples=8, store=store)
    found: dict[str, list[tuple[float, int]]] = {}

    def add(name: str, value: float, step: int) -> None:
        found.setdefault(name, []).append((value, step))

    monkeypatch.setattr(shows._scalars._writer, "add_scalar", add)
    shows.begin_epoch(1)
    for _ in range(3):
        shows.step(None)
    shows.end()
    assert found["communication/sent_bytes_per_step"] == [(100, 2), (150, 3)]
    assert found["communication/zeros"] == [(50 / 150, 2), (10 / 50, 3)]
    assert found["communication/zeros_of_largest_key"] == [(50 / 100, 2)]


def test_what_is_not_installed_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "tqdm.py").write_text("raise ModuleNotFoundError('none here', name='tqdm')\n")
    ended = run_python("-c", "import sys, runpy; sys.path[:0] = sys.argv[1:3];"
                       "sys.argv = ['train']; runpy.run_path(sys.path[1] + '/train_image.py')",
                       tmp_path, EXAMPLES, status=1)
    assert ended.stderr == ("the package tqdm is not installed: pip install '.[examples]' brings "
                            "it\n")
