"""The replay: that traces are what their networks cost, and that a run sends what it has to."""
from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator

import pytest
from mxnet.gluon import nn

from benchmarks import result_lines
from benchmarks.cluster import Link
from benchmarks.replay import forking, job, measurement, processes, processors, published, summary
from benchmarks.replay.arms import ARMS, OURS, Arm, environment_of
from benchmarks.replay.bound import FRAMES, least_seconds, wire_seconds
from benchmarks.replay.costs import Device, layers_of
from benchmarks.replay.forking import Interpreter, InterpreterError
from benchmarks.replay.job import Settings
from benchmarks.replay.processes import Interpreters, JobError
from benchmarks.replay.profile import profile
from benchmarks.replay.segments import Segments
from benchmarks.replay.trace import Layer, Trace, TraceError, digest, load
from tests.support.paths import python_path
from tests.support.processes import run_python
from tests.support.system_packages import need, needs_root

TOY = Trace("toy", 8, "none", "by hand", [
    Layer({"b_weight": 30_000, "b_bias": 10}, 0.002, 0.004),
    Layer({"a_weight": 200_000}, 0.001, 0.003),
])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        everything = metafunc.config.getoption("--all")
        # MXNet's own P3 stands still in one of some thirty runs on busy processors.
        metafunc.parametrize("name", ARMS if everything else ["p3", "dist_sync", "ec_dnn"])


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("traces") / "toy.json"
    TOY.save(file)
    return str(file)


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with Interpreters() as started:
        yield started


def settings(trace: str) -> Settings:
    return Settings(trace, hosts=2, gigabits=1.0, dilation=1.0, warm_up=1, iterations=3)


def test_a_line_that_was_not_written_to_its_end_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text('{"key": "whole"}\n{"key": "to')
    assert result_lines.read(file) == [{"key": "whole"}]
    result_lines.append(file, {"key": "next"})
    assert result_lines.read(file) == [{"key": "whole"}, {"key": "next"}]


@needs_root
def test_an_arm_exchanges_what_it_has_to(name: str, toy: str, interpreters: Interpreters) -> None:
    need("tc")
    assert not ARMS[name].missing(), ARMS[name].missing()
    # So many that what crosses the ends of an iteration is little beside all of it.
    many = replace(settings(toy), iterations=30)
    found = job.run(ARMS[name], many, interpreters, limit=120)
    assert len(found["series"]) == 31
    assert found["seconds"] > TOY.compute
    assert 0 < found["busy"] <= 1
    assert 0 <= found["timeouts"] <= found["sent_again"]
    # Of two hosts, each has half of the servers.
    both_ways = 2 * 4 * TOY.elements * 0.5
    if ARMS[name].dense:
        assert 0.9 * both_ways < found["sent"] < 1.5 * both_ways
    elif ARMS[name].models:
        # Of two models in eight steps, twice, half to the other host's server, half to its worker.
        assert 0.9 < found["sent"] / (both_ways / 4) < 1.5
    else:
        assert 0 < found["sent"] < both_ways


@needs_root
def test_slices_and_samples_of_communication_alone(
    tmp_path: Path, interpreters: Interpreters
) -> None:
    need("tc")
    TOY.scaled(1e5).save(tmp_path / "slow.json")  # whose computing would take 1000 s
    # Many iterations: what is under way at the end of each then hardly counts.
    how = replace(settings(str(tmp_path / "slow.json")), slice_elements=40, sample=0.002,
                  computes=False, iterations=30)
    found = job.run(ARMS["p3"], how, interpreters, limit=120)
    both_ways = 2 * 4 * TOY.elements * 0.5
    # Each slice has a header, which is nearly half as long, also where slices travel together.
    assert found["sent"] > 1.3 * both_ways
    traffic = found["traffic"]
    assert traffic["sample"] == 0.002
    assert len(traffic["sent"]) == len(traffic["received"]) > 3
    assert min(max(traffic["sent"]), max(traffic["received"])) > 0


def test_runs_have_the_keys_that_their_results_are_kept_under() -> None:
    run = measurement.Run("p3", Settings("resnet50", 4, 1.0, 10.1, 2, 3), 0)
    assert run.key == json.dumps(["p3", {
        "trace": "resnet50", "hosts": 4, "gigabits": 1.0, "dilation": 10.1, "warm_up": 2,
        "iterations": 3, "by_name": False,
    }, digest("resnet50"), 0, 3])
    others = [replace(run.settings, **change)
              for change in ({"slice_elements": 1000}, {"sample": 0.01}, {"computes": False})]
    keys = {replace(run, settings=other).key for other in others}
    assert len(keys | {run.key}) == 4
    assert others[0].described()["slice_elements"] == 1000


def test_many_hosts_are_slower_still() -> None:
    few, many = (replace(settings("vgg16"), hosts=hosts, gigabits=10.0) for hosts in (4, 8))
    least = least_seconds(load("vgg16"), 8, 10.0)
    carried = 8 * wire_seconds(load("vgg16").elements, 8, 10.0) * 10.0 / least
    assert measurement.dilation(many, ["p3"]) == pytest.approx(1.6 * carried / 2.0, abs=0.05)
    assert measurement.dilation(few, ["p3"]) <= 4 * 10.0 / 2.0


def test_communication_alone_has_a_dilation_of_its_own(toy: str) -> None:
    alone = replace(settings("vgg16"), computes=False, hosts=4, gigabits=10.0)
    assert measurement.dilation(alone, ["p3"]) == 40.0
    assert measurement.dilation(replace(alone, gigabits=1.0), ["p3"]) == 40.0
    # A small network's iteration would be over before its messages have been handled.
    small = replace(alone, trace=toy)
    wire = wire_seconds(load(toy).elements, 4, 10.0)
    assert measurement.dilation(small, ["p3"]) == pytest.approx(4.0 / wire, abs=0.05)
    assert measurement.dilation(replace(small, hosts=1), ["p3"]) == 10.0


@needs_root
def test_a_run_that_fails_names_who_failed(toy: str, interpreters: Interpreters) -> None:
    need("tc")
    wrong = Arm("wrong", OURS, "p3", compression={"type": "no_such_type"})
    ended = r"worker on host \d ended with status 1:(.|\n)*no_such_type"
    with pytest.raises(JobError, match=ended):
        job.run(wrong, settings(toy), interpreters, limit=120)
    with pytest.raises(JobError, match="there still run: worker on host 0, worker on host 1"):
        job.run(ARMS["p3"], settings(toy), interpreters, limit=0)


@needs_root
def test_a_peer_that_has_measured_need_not_end(
    interpreters: Interpreters, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("tc")
    monkeypatch.setattr(processes, "_GOING", 0.2)
    stay = "tests.benchmarks.forked:stay"
    found = processes.run(ARMS["stock_p3"], 1, Link(), stay, {}, interpreters, limit=60)
    assert found == [{"rank": 0}]
    with pytest.raises(JobError, match="there still run: worker on host 0"):
        processes.run(ARMS["p3"], 1, Link(), stay, {}, interpreters, limit=3)


def test_a_measurement_goes_on_where_it_ended(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []
    limits: list[float] = []

    def run(arm: Arm, settings: Settings, _: Any, limit: float) -> dict[str, Any]:
        limits.append(limit)
        began.append(f"{arm.store} {settings.gigabits:g}")
        if len(began) == 4:
            raise JobError("it fell over")
        return {"seconds": 0.5 * len(began), "series": [], "sent": 1, "received": 1}

    monkeypatch.setattr(job, "run", run)
    file = tmp_path / "results.jsonl"
    runs = measurement.plan(settings(toy), [1.0, 4.0], ["p3", "dist_sync"], repeats=2)
    assert list(measurement.measure(runs[:3], file, 1000)) == []
    failures = list(measurement.measure(runs, file, 1000))
    assert failures == ["dist_sync at 4 Gbit/s failed: it fell over"]
    assert list(measurement.measure(runs, file, 1000)) == []
    assert list(measurement.measure(runs, file, 1000)) == []
    [brief] = measurement.plan(settings(toy), [3.0], ["p3"], repeats=1)
    assert list(measurement.measure([brief], file, brief.limit / 2)) == []
    assert limits[0] == runs[0].limit
    assert 0 < limits[-1] <= brief.limit / 2
    in_turn = ["p3 1", "dist_sync 1", "p3 4", "dist_sync 4"]
    assert measurement.lines_of(runs, tmp_path / "another.jsonl") == []
    assert began == [*in_turn, *in_turn, "dist_sync 4", "p3 3"]
    late = measurement.plan(settings(toy), [2.0], ["p3"], repeats=2)
    assert list(measurement.measure(late, file, 1)) == [
        "time is up: 2 runs are left; run it again to go on"]
    found = summary.throughputs(measurement.lines_of(runs, file))
    # 16 samples in 0.5 and in 2.5 s.
    assert found["p3", 1.0] == summary.Spread((32 + 6.4) / 2, 6.4, 32, 2)
    table = list(summary.table(measurement.lines_of(runs, file)))
    assert table[0] == "| samples/s | 1 Gbit/s | 4 Gbit/s |"
    assert "| p3 | 19 (6 to 32) |" in table[2]


def test_a_run_that_the_given_time_ends_has_not_failed(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(arm: Arm, settings: Settings, _: Any, limit: float) -> dict[str, Any]:
        assert limit <= 2
        time.sleep(limit + 0.01)
        raise JobError("there still run: all")

    monkeypatch.setattr(job, "run", run)
    monkeypatch.setattr(measurement.Run, "expected", 0.0)
    runs = measurement.plan(settings(toy), [1.0], ["p3"], repeats=1)
    file = tmp_path / "results.jsonl"
    assert list(measurement.measure(runs, file, 2)) == [
        "time is up: p3 at 1 Gbit/s was given up; run it again to go on"
    ]
    assert file.read_text() == ""


def test_a_progress_bar_says_how_much_time_is_left() -> None:
    with measurement._Bar(
        total=100, bar_format=measurement._BAR, file=io.StringIO(), desc="p3"
    ) as bar:
        bar.start_t -= 30  # seconds ago
        bar.n = 25
        assert re.fullmatch(r"p3:  25%\|.*\| 00:3\d, about 01:3\d left", str(bar))


def test_how_busy_processors_were_is_said_where_it_is_known() -> None:
    assert processors.described([{"arm": "p3"}]) == ""
    lines = [{"arm": "p3"}, {"busy": 0.414}, {"busy": 0.6}]
    assert processors.described(lines) == "processors were busy for 41 to 60 % of the iterations"
    before = processors.Ticks(busy=100, all=1000)
    assert processors.Ticks(busy=130, all=1040).busy_since(before) == 0.75
    assert 0 < processors.Ticks.now().busy < processors.Ticks.now().all


def test_segments_that_nobody_acknowledges_count() -> None:
    before = Segments.now()
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # one is accepted, for nobody; what else comes is dropped
            caller = stack.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        ending = time.monotonic() + 30  # TCP waits for a second
        while not (found := Segments.now().since(before))["timeouts"]:
            assert time.monotonic() < ending
            time.sleep(0.05)
    assert found["timeouts"] <= found["sent_again"]


def test_results_of_a_busy_machine_or_of_few_runs_are_doubted() -> None:
    def lines(load: float, runs: int) -> list[dict[str, Any]]:
        line = {"arm": "p3", "gigabits": 1.0, "seconds": 0.5}
        return [{**line, "load": 0.5}] + [{**line, "load": load}] * (runs - 1)

    assert summary.doubts(lines(2.0, 3), cores=2) == []
    [busy] = summary.doubts(lines(30.0, 3), cores=2)
    assert busy.startswith("warning: this machine was busy: a load of 0.5 to 30 on 2 cores")
    [few] = summary.doubts(lines(2.0, 2), cores=2)
    assert "medians of 2 runs" in few
    assert summary.doubts([], cores=2) == []


def test_a_missing_package_is_named_with_what_brings_it(tmp_path: Path) -> None:
    (tmp_path / "tqdm.py").write_text("raise ModuleNotFoundError(name='tqdm')")
    path = os.pathsep.join([str(tmp_path), python_path()])
    command = ("-m", "benchmarks.replay", "profile", "--help")
    ended = run_python(*command, status=1, environment={"PYTHONPATH": path})
    said = "error: the package tqdm is not installed: pip install '.[examples]' brings it\n"
    assert ended.stderr == said


def test_results_can_be_kept_before_the_first_run(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "run", lambda *_: {"seconds": 1.0})
    runs = measurement.plan(settings(toy), [1.0], ["p3"], repeats=1)
    file = tmp_path / "missing" / "results.jsonl"
    assert list(measurement.measure(runs, file, 1000)) == []
    assert len(measurement.lines_of(runs, file)) == 1
    monkeypatch.delattr(job, "run")
    with pytest.raises(measurement.ResultsError, match=r"written to .*missing: "):
        list(measurement.measure(runs, file.parent, 1000))


def test_results_of_another_trace_of_the_same_name_do_not_count(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "run", lambda *_: {"seconds": 1.0})
    trace = shutil.copy(toy, tmp_path)
    runs = measurement.plan(settings(trace), [1.0], ["p3"], repeats=1)
    file = tmp_path / "results.jsonl"
    assert list(measurement.measure(runs, file, 1000)) == []
    assert measurement.left(runs, file) == []
    TOY.scaled(2).save(Path(trace))
    assert measurement.left(runs, file) == runs
    assert measurement.lines_of(runs, file) == []


@pytest.mark.parametrize(("last", "says"), [
    ("exit 1", "cannot import mxnet: there is none"),
    ("exec sleep 1000", r"cannot import mxnet within 0\.5 s"),
])
def test_an_interpreter_that_does_not_start_says_why(
    last: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    # More than a pipe holds.
    python.write_text(f"#!/bin/sh\nyes | head -c 300000\necho there is none\n{last}\n")
    python.chmod(0o755)
    if last != "exit 1":
        monkeypatch.setattr(forking, "LIMIT", 0.5)
    with pytest.raises(InterpreterError, match=says):
        Interpreter(str(python), ["mxnet"], dict(os.environ))


@pytest.mark.parametrize(
    ("arm", "function", "said"),
    [
        ("dist_sync", "send_while_computing", "True"),
        ("p3", "send_while_computing", "True"),
        ("p3", "aggregate", "1"),
    ],
)
def test_processes_are_as_a_users_are(
    arm: str, function: str, said: str, tmp_path: Path, interpreters: Interpreters
) -> None:
    """Though they are forks, and computing is a wait: that keeps no store from sending, and what
    importing kvstore_ext sets for later holds."""
    output = tmp_path / "output"
    fork = interpreters.get(ARMS[arm]).fork(
        f"tests.benchmarks.forked:{function}", [], None, environment_of(ARMS[arm], 60), output
    )
    latest = time.monotonic() + 60
    while fork.poll() is None:
        assert time.monotonic() < latest, "it has not ended"
        time.sleep(0.05)
    assert output.read_text().split() == [said]


def test_the_bound_is_the_gap_that_nothing_can_fill() -> None:
    def wire(elements: int) -> float:  # seconds at 0.5 Gbit/s with two hosts
        return elements * 4 * 8 * FRAMES / 0.5e9

    # The first layer's sums travel while nothing can be computed; the second's may meanwhile.
    first = 0.007 + wire(30_010) + 0.003
    both = 0.003 + wire(230_010) + 0.001
    assert least_seconds(TOY, 2, 0.5) == pytest.approx(max(first, both))
    assert least_seconds(TOY, 2, 1000) == pytest.approx(TOY.compute, rel=0.01)


def test_costs_are_those_of_the_operations() -> None:
    network = nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(nn.Conv2D(4, kernel_size=3, padding=1, use_bias=False), nn.BatchNorm(),
                    nn.Activation("relu"), nn.Dense(10))
    computes = Device("only computes", flops=1e9, memory=1e30, reached=0.5)
    layers = layers_of(network, {"data": (2, 3, 8, 8)}, computes)
    assert [list(layer.parameters.values()) for layer in layers] == [[108], [4, 4], [2560, 10]]
    convolution, dense = 2 * (2 * 4 * 64) * 27, 2 * 2 * 10 * 256
    assert [layer.forward for layer in layers] == pytest.approx(
        [2 * convolution / 1e9, 0, 2 * dense / 1e9], abs=1e-12)
    assert [layer.backward for layer in layers] == [2 * layer.forward for layer in layers]
    moves = Device("only moves", flops=1e30, memory=1e9, reached=1)
    _, norm, _ = layers_of(network, {"data": (2, 3, 8, 8)}, moves)
    # Batch normalisation reads a value and four numbers a channel, ReLU a value; both write one.
    assert norm.forward == pytest.approx(4 * (4 * 512 + 4 * 4) / 1e9)


def test_the_traces_are_what_the_script_makes() -> None:
    for made in published.traces():
        kept = load(made.name)
        assert [list(layer.parameters.values()) for layer in kept.layers] == [
            list(layer.parameters.values()) for layer in made.layers]
        assert [layer.forward for layer in kept.layers] == pytest.approx(
            [layer.forward for layer in made.layers])
    assert load("resnet50").elements == 25_575_912


def small() -> nn.HybridBlock:
    return nn.Dense(3)


def test_a_network_of_ones_own_is_traced(tmp_path: Path) -> None:
    made = profile(f"{__name__}:small", [(4, 5)], 0.25, "a test")
    assert made.compute == pytest.approx(0.25)
    assert (made.name, made.batch, made.elements) == ("small", 4, 18)
    made.save(tmp_path / "small.json")
    assert load(str(tmp_path / "small.json")) == made
    for where, says in [
        ("small", "must be MODULE:FUNCTION"),
        ("no_such:net", "there is no network"),
        (f"{__name__}:published", "it must be a HybridBlock"),
    ]:
        with pytest.raises(TraceError, match=says):
            profile(where, [(4, 5)], None, "a test")
    with pytest.raises(TraceError, match="makes no graph"):
        profile(f"{__name__}:small", [(4, 5), (1, 2), (3, 4)], None, "a test")
    with pytest.raises(TraceError, match="there is no network 'vgg'; there are alexnet"):
        load("vgg")
