"""Any process of a job is lost, at any point: all others end by themselves, and say why."""

from __future__ import annotations

import os
import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Sequence

import pytest

from benchmarks.cluster import Cluster as Network
from benchmarks.cluster import Host
from tests.failures.matrix import (
    CELLS,
    LIMIT,
    SELECTED,
    Cell,
    expected,
    expected_of_itself,
    table,
    table_of_themselves,
)
from tests.support.cluster import Cluster, Job, Process, await_failure
from tests.support.paths import ROOT
from tests.support.system_packages import need
from tests.support.tasks.losing import train

SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}
AT_ONCE = 6  # jobs side by side; they mostly wait
IS_ROOT = os.geteuid() == 0
CAN_CUT_OFF = IS_ROOT and shutil.which("tc") is not None


def lose(cluster: Cluster, cell: Cell, directory: Path) -> tuple[Job, Process]:
    """Runs a job until its survivors have ended, as far as they do; returns it and who was lost."""
    if cell.how != "cut off":
        return _lose(cluster, cell, directory, lambda job, victim: victim.send(SIGNALS[cell.how]))
    with Network(hosts=6) as network:

        def cut_off(job: Job, victim: Process) -> None:
            network.cut_off(network.hosts[job.processes.index(victim)])

        return _lose(cluster, cell, directory, cut_off, network.hosts)


def _lose(
    cluster: Cluster,
    cell: Cell,
    directory: Path,
    lose_it: Callable[[Job, Process], None],
    hosts: Sequence[Host] = (),
) -> tuple[Job, Process]:
    directory.mkdir()
    options = {"timeout": LIMIT, "silence": LIMIT, "patience": 0}
    job = cluster.start(
        train, directory, cell.role, cell.phase, workers=3, options=options, hosts=hosts
    )
    if cell.role == "worker":
        job.await_output(f"at {cell.phase}")
        victim = next(each for each in job.workers if f"at {cell.phase}" in each.output)
    else:
        victim = {"server": job.servers, "scheduler": job.scheduler}[cell.role][-1]
        for process in job.workers:
            process.await_output(f"at {cell.phase}")
    lose_it(job, victim)
    (directory / "go").touch()
    survivors = [process for process in job.processes if hosts or process is not victim]
    promise = expected(cell)
    if promise.well and promise.words:
        for process in job.workers:
            process.await_output(promise.words)
        (directory / "stop").touch()
    for process in survivors:
        process.wait(LIMIT + 24)
    return job, victim


class Lost:
    """Jobs that have lost a process, run side by side as they are asked for."""

    def __init__(self, cluster: Cluster, directory: Path, cells: list[Cell]) -> None:
        self._cluster, self._directory, self._cells = cluster, directory, cells
        self._found: dict[Cell, tuple[Job, Process]] = {}

    def __getitem__(self, cell: Cell) -> tuple[Job, Process]:
        if cell not in self._found:
            first = self._cells.index(cell)
            cells = self._cells[first : first + AT_ONCE]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                self._found.update(zip(cells, pool.map(self._lose, cells)))
        return self._found[cell]

    def _lose(self, cell: Cell) -> tuple[Job, Process]:
        return lose(self._cluster, cell, self._directory / " ".join(cell))


@pytest.fixture(scope="module")
def lost(
    module_cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
) -> Lost:
    cells = CELLS if pytestconfig.getoption("--all") else SELECTED
    if not CAN_CUT_OFF:
        cells = [cell for cell in cells if cell.how != "cut off"]
    return Lost(module_cluster, tmp_path_factory.mktemp("lost"), cells)


def _parameter(cell: Cell) -> Any:
    marks = [] if cell in SELECTED else [pytest.mark.all_only]
    if cell.how == "cut off":
        marks.append(pytest.mark.skipif(not IS_ROOT, reason="network namespaces need root"))
    return pytest.param(cell, marks=marks, id="-".join(cell).replace(" ", "_"))


@pytest.mark.parametrize("cell", map(_parameter, CELLS))
def test_whoever_is_lost_the_others_end_and_say_why(lost: Lost, cell: Cell) -> None:
    if cell.how == "cut off":
        need("tc")
    job, victim = lost[cell]
    promise = expected(cell)
    survivors = [process for process in job.processes if process is not victim]
    statuses = {process.name: process.wait(0) for process in survivors}
    if promise.well:
        assert set(statuses.values()) == {0}, statuses
    else:
        assert all(status is not None and status > 0 for status in statuses.values()), statuses
    assert any(re.search(promise.words, process.output) for process in survivors), promise.words
    if cell.how == "cut off":  # it lives, and has lost the others
        assert victim.wait(0) == 1
        assert re.search(expected_of_itself(cell).words, victim.output)


@pytest.mark.all_only
def test_where_messages_are_sent_again_the_lost_one_is_named_in_time(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Before ps-lite aborts whoever waits for ten acknowledgements."""
    resending = {"PS_RESEND": "1", "PS_RESEND_TIMEOUT": str(100 * (LIMIT + 5))}
    cell, options = ["worker", "push"], {"silence": LIMIT}
    job = cluster.start(train, tmp_path, *cell, options=options, environment=resending)
    job.await_output("at push")
    victim = next(each for each in job.workers if "at push" in each.output)
    victim.send(signal.SIGKILL)
    survivors = [process for process in job.processes if process is not victim]
    await_failure(*survivors)
    for process in survivors:
        assert re.search(r"worker \d has not been heard of for 6 s, nor pushed key", process.output)


def test_the_tables_of_the_documents_are_these() -> None:
    text = (ROOT / "docs" / "failures.md").read_text()
    assert table() in text
    assert table_of_themselves() in text
