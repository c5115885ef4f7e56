"""Any process of a job is lost, at any point: all others end by themselves, and say why."""

from __future__ import annotations

import os
import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.failures.losses import Loss, lose, what_is_amiss
from tests.failures.matrix import (
    CELLS,
    LIMIT,
    SELECTED,
    Cell,
    expected_of_itself,
    table,
    table_of_seconds,
    table_of_themselves,
)
from tests.support.cluster import Cluster, await_failure
from tests.support.paths import ROOT
from tests.support.system_packages import need, needs_root
from tests.support.tasks.losing import train

AT_ONCE = 6  # jobs side by side; they mostly wait
CAN_CUT_OFF = os.geteuid() == 0 and shutil.which("tc") is not None


class Lost:
    """Jobs that have lost a process, run side by side as they are asked for."""

    def __init__(self, cluster: Cluster, directory: Path, cells: list[Cell]) -> None:
        self._cluster, self._directory, self._cells = cluster, directory, cells
        self._found: dict[Cell, Loss] = {}

    def __getitem__(self, cell: Cell) -> Loss:
        if cell not in self._found:
            first = self._cells.index(cell)
            cells = self._cells[first : first + AT_ONCE]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                self._found.update(zip(cells, pool.map(self._lose, cells)))
        return self._found[cell]

    def _lose(self, cell: Cell) -> Loss:
        return lose(self._cluster, cell, self._directory / cell.name)


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
        marks.append(needs_root)
    return pytest.param(cell, marks=marks, id=cell.name)


@pytest.mark.parametrize("cell", map(_parameter, CELLS))
def test_whoever_is_lost_the_others_end_and_say_why(lost: Lost, cell: Cell) -> None:
    if cell.how == "cut off":
        need("tc")
    loss = lost[cell]
    assert what_is_amiss(cell, loss) == []
    if cell.how == "cut off":  # it lives, and has lost the others
        assert loss.victim.wait(0) == 1
        assert re.search(expected_of_itself(cell).words, loss.victim.output)


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


def test_seconds_that_were_measured_stand_in_a_table() -> None:
    measured = {
        Cell("worker", "push", "killed"): (7.04, None),
        Cell("worker", "push", "cut off"): (8.25, 6.96),
    }
    rows = table_of_seconds(measured).splitlines()
    assert len(rows) == 2 + 18
    assert "| worker | while gradients are pushed | 7.0 | - | 8.2 | 7.0 |" in rows
