"""What a launched job records with --trace: complete, in order, and on one clock.

The servers count time from elsewhere, by namespaces of time, where the tests run as root.
"""
from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from kvstore_ext.trace.events import LEAST_WEIGHT, WHOLE_KEY, Kind, Message
from kvstore_ext.trace.reading import JobTrace, ProcessTrace, read

from tests.support import forked
from tests.support.fork_desk import ForkDesk
from tests.support.paths import ROOT
from tests.trace.specification import violations

FIRST, LAST = 3, 6  # --trace-steps
ROUNDS = range(FIRST - 1, LAST)  # that are recorded from beginning to end
AHEAD = 5000 if os.geteuid() == 0 else 0  # seconds by which the servers' clocks are
OF_NO_KEY = (Kind.STEP, Kind.CLOCK, Kind.ACKNOWLEDGED, Kind.FORWARD, Kind.BACKWARD)
WAYS = {Kind.ENCODED, Kind.QUEUED, Kind.SENT, Kind.RECEIVED, Kind.WRITTEN}


class Traced(NamedTuple):
    """A trace, as read and as merged."""

    job: JobTrace
    merged: Any
    output: str  # of kvstore-ext trace


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """The trace of one job, for all tests. Forks will do as workers; servers are in a namespace."""
    directory = tmp_path_factory.mktemp("traced")
    server = f"{sys.executable} -m kvstore_run --serve"
    if AHEAD:
        server = f"unshare --time --monotonic {AHEAD} {server}"
    options = {"slice_bytes": 4000, "window_bytes": 8000, "silence": 60, "patience": 60}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment["KVSTORE_EXT_OPTIONS"] = json.dumps(options)
    with contextlib.ExitStack() as stack:
        python = [sys.executable]
        if not forked.as_users_do:
            python = stack.enter_context(ForkDesk(directory / "desk").serve()).command
        command = [
            *(sys.executable, "-m", "kvstore_launch", "-n", "2", "-s", "2"),
            *("--trace", "traces", "--trace-steps", f"{FIRST}:{LAST}", "--server-command", server),
            *(*python, str(Path(__file__).with_name("train.py"))),
        ]
        launched = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120
        )
    assert launched.returncode == 0, launched.stdout + launched.stderr
    merging = subprocess.run(
        [sys.executable, str(ROOT / "kvstore_run.py"), "trace", "traces"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert merging.returncode == 0, merging.stderr
    merged = json.loads((directory / "traces" / "trace.json").read_text())
    return Traced(read(directory / "traces"), merged, merging.stdout)


def slices_of(job: JobTrace) -> list[tuple[int, int, int, int]]:
    """Key, slice, its server and its elements, of all."""
    return [
        (key.identity, part.index, part.server, part.elements)
        for key in job.keys.values()
        for part in key.slices
    ]


def by_slice(process: ProcessTrace) -> dict[tuple[int, int, int], dict[Kind, list[np.void]]]:
    """A process's events by key, slice and round, then by kind."""
    found: dict = defaultdict(lambda: defaultdict(list))
    for event in process.events:
        asked = event["message"] in (Message.ASK, Message.ANSWER)
        if not asked and event["kind"] not in OF_NO_KEY:
            name = (int(event["key"]), int(event["slice"]), int(event["round"]))
            found[name][Kind(event["kind"])].append(event)
    return found


def test_keys_and_their_slices_are_named(traced: Traced) -> None:
    names = {key.name.split(" ")[1].strip("()") for key in traced.job.keys.values()}
    assert names == {f"dense{i}_{what}" for i in range(3) for what in ("weight", "bias")}
    sizes = sorted(key.elements for key in traced.job.keys.values())
    assert sizes == [10, 40, 50, 500, 2000, 4000]
    for key in traced.job.keys.values():
        assert sum(part.elements for part in key.slices) == key.elements
        assert len(key.slices) >= key.elements * 4 / 4000
    assert all(process.complete and not process.dropped for process in traced.job.processes)


def test_a_worker_records_each_slice_on_its_whole_way(traced: Traced) -> None:
    for worker in traced.job.workers:
        found = by_slice(worker)
        for key, part, server, elements in slices_of(traced.job):
            for number in ROUNDS:
                events = found[key, part, number]
                assert set(events) == WAYS, (key, part, number)
                for kind in (Kind.ENCODED, Kind.QUEUED, Kind.WRITTEN):
                    (event,) = events[kind]
                    assert (event["peer"], event["bytes"]) == (server, 4 * elements)
                for kind in (Kind.SENT, Kind.RECEIVED):
                    assert sum(event["bytes"] for event in events[kind]) == 4 * elements
                order = [
                    events[Kind.ENCODED][0]["begin"],
                    events[Kind.ENCODED][0]["end"],
                    events[Kind.QUEUED][0]["begin"],
                    *(event["begin"] for event in events[Kind.SENT]),
                    *(event["begin"] for event in events[Kind.RECEIVED]),
                    events[Kind.WRITTEN][0]["begin"],
                ]
                assert order == sorted(order)


def test_a_worker_records_each_key_from_its_gradient_to_its_parameters(traced: Traced) -> None:
    for worker in traced.job.workers:
        found = by_slice(worker)
        for key in traced.job.keys.values():
            for number in ROUNDS:
                events = found[key.identity, WHOLE_KEY, number]
                assert set(events) == {Kind.READY, Kind.PREPARED, Kind.DONE}
                (ready,), (prepared,), (done,) = (
                    events[kind] for kind in (Kind.READY, Kind.PREPARED, Kind.DONE)
                )
                written = [
                    found[key.identity, part.index, number][Kind.WRITTEN][0]["end"]
                    for part in key.slices
                ]
                assert ready["begin"] <= ready["end"] == done["begin"] <= prepared["begin"]
                assert prepared["end"] <= min(written)
                assert max(written) <= done["end"]
                assert ready["bytes"] == 4 * key.elements


def test_a_server_records_what_it_makes_of_each_slice(traced: Traced) -> None:
    everybody = [worker.rank for worker in traced.job.workers]
    for server in traced.job.servers:
        found = by_slice(server)
        for key, part, rank, elements in slices_of(traced.job):
            for number in ROUNDS if rank == server.rank else ():
                events = found[key, part, number]
                for kind in (Kind.SUMMED, Kind.ANSWERED):
                    assert sorted(event["peer"] for event in events[kind]) == everybody
                    assert all(event["bytes"] == 4 * elements for event in events[kind])
                (updated,) = events[Kind.UPDATED]
                assert max(event["end"] for event in events[Kind.SUMMED]) <= updated["begin"]
                assert updated["end"] <= min(event["begin"] for event in events[Kind.ANSWERED])
                for kind in (Kind.RECEIVED, Kind.SENT):
                    for peer in everybody:
                        parts = [event for event in events[kind] if event["peer"] == peer]
                        assert sum(event["bytes"] for event in parts) == 4 * elements


def test_clocks_are_brought_together_as_exactly_as_is_said(traced: Traced) -> None:
    first, *others = traced.job.processes
    assert (first.clock.offset, first.clock.error) == (0, 0)
    for process in others:
        ahead = AHEAD * 10**9 if process.role == "server" else 0
        assert abs(process.clock.offset + ahead) <= process.clock.error + 1
        assert process.clock.error < 10**9
        assert (process.clock.error > 0) == (AHEAD > 0 and process.role == "server")


def test_nothing_arrives_before_it_is_sent(traced: Traced) -> None:
    servers = {server.rank: (server, by_slice(server)) for server in traced.job.servers}
    for worker in traced.job.workers:
        here = by_slice(worker)
        for key, part, rank, _ in slices_of(traced.job):
            server, there = servers[rank]
            error = worker.clock.error + server.clock.error
            for number in ROUNDS:
                at_worker, at_server = here[key, part, number], there[key, part, number]
                push = at_worker[Kind.SENT][0]["begin"]
                result = at_worker[Kind.RECEIVED][-1]["begin"]
                came = [e["begin"] for e in at_server[Kind.RECEIVED] if e["peer"] == worker.rank]
                left = [e["begin"] for e in at_server[Kind.SENT] if e["peer"] == worker.rank]
                assert push <= came[0] + error
                assert left[-1] <= result + error


def test_each_layer_runs_forward_and_backward_once_a_step(traced: Traced) -> None:
    for worker in traced.job.workers:
        steps = worker.of_kind(Kind.STEP)
        assert steps["round"].tolist() == list(range(FIRST - 1, LAST))
        dense = {f"dense{i}_fwd" for i in range(3)}
        loss = "softmaxcrossentropyloss0_fwd"  # a block without parameters, that is not hybridized
        assert set(worker.layers) == {*dense, "dense0_relu_fwd", loss}
        for layer, name in enumerate(worker.layers):
            for kind in (Kind.FORWARD,) if name == loss else (Kind.FORWARD, Kind.BACKWARD):
                ran = worker.of_kind(kind)
                # Of the steps before the first and after the last a part may be there.
                assert len(ran[ran["key"] == layer]) - (LAST - FIRST) in (0, 1, 2)


def test_a_layers_forward_pass_ends_after_its_parameters_have_come(traced: Traced) -> None:
    for worker in traced.job.workers:
        done = worker.of_kind(Kind.DONE)
        for layer, name in enumerate(worker.layers):
            key = [k.identity for k in traced.job.keys.values()
                   if k.name.endswith(f"({name.replace('_fwd', '_weight')})")]
            ends = worker.of_kind(Kind.FORWARD)
            ends = ends[ends["key"] == layer]["end"]
            for identity in key:
                there = {int(e["round"]): e["end"] for e in done[done["key"] == identity]}
                for step, end in zip(range(FIRST, LAST + 1), ends):
                    assert there[step - 1] < end


def test_the_merged_file_keeps_to_the_specification(traced: Traced) -> None:
    assert list(violations(traced.merged)) == []


def test_the_merged_file_has_an_arrow_from_each_push_to_its_result(traced: Traced) -> None:
    arrows = defaultdict(list)
    for event in traced.merged["traceEvents"]:
        if event["ph"] in "stf":
            arrows[event["id"]].append(event)
    whole = [points for points in arrows.values() if len(points) == 3]
    assert len(whole) >= 2 * len(slices_of(traced.job)) * len(ROUNDS)
    for points in whole:
        begin, through, end = sorted(points, key=lambda point: "stf".index(point["ph"]))
        assert begin["pid"] == end["pid"] != through["pid"]
        assert begin["ts"] < end["ts"]  # by one worker's clock


def test_the_merged_file_counts_bytes_in_flight_within_the_window(traced: Traced) -> None:
    flying = [e for e in traced.merged["traceEvents"]
              if e["ph"] == "C" and e["name"].startswith("in flight")]
    names = {(event["pid"], event["name"]) for event in flying}
    assert len(names) == 8, "2 workers to 2 servers, and back"
    most = max(event["args"]["bytes"] for event in flying)
    assert LEAST_WEIGHT <= most <= 8000 + 1000  # the window, and what is withheld of the credit


def test_the_command_says_what_there_is(traced: Traced) -> None:
    for process in traced.job.processes:
        assert f"{process.name} on {process.host}: {len(process.events)} events" in traced.output
    assert f"{len(traced.merged['traceEvents'])} events; open it in" in traced.output
