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

SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}
AT_ONCE = 6  # jobs side by side; they mostly wait
IS_ROOT = os.geteuid() == 0
CAN_CUT_OFF = IS_ROOT and shutil.which("tc") is not None


def train(directory: str, role: str, phase: str) -> None:
    """Trains until a file says stop; stands still at the phase if it is the lost worker."""
    import os
    import threading
    from pathlib import Path

    def come_to(point: str) -> None:
        if point != phase:
            return
        if role == "worker":
            try:
                Path(directory, "lost").mkdir()  # the first to come here
            except FileExistsError:
                return
        print("at", point, flush=True)
        waits = role == "worker" or point in ("register", "exit")
        while waits and not os.path.exists(f"{directory}/go"):
            threading.Event().wait(0.01)  # until it, or the other one, is lost

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    come_to("register")
    store = mx.kv.create("p3")
    come_to("first key")
    arrays = [mx.nd.ones((30000,)) for _ in range(8)]
    for key, array in enumerate(arrays):
        store.broadcast(key, array, out=array)
    rows = mx.nd.arange(4, dtype="int64")
    sparse = mx.nd.ones((100, 10)).tostype("row_sparse")
    if phase == "sparse":
        store.init("rows", sparse)
    stop = mx.nd.zeros((1,))
    store.broadcast("stop", stop, out=stop)
    step = 0
    while stop.asscalar() == 0:
        step += 1
        for key, array in enumerate(arrays):
            if step == 5 and key == 3:
                come_to("push")
            store.push(key, array)
        if step == 5:
            come_to("pull")
        for key, array in enumerate(arrays):
            store.pull(key, out=array)
        if phase == "sparse":
            if step == 5:
                come_to("sparse")
            store.push("rows", mx.nd.ones((100, 10)).tostype("row_sparse"))
            store.row_sparse_pull("rows", out=sparse, row_ids=rows)
            sparse.wait_to_read()
        done = (phase == "exit" and step == 5) or os.path.exists(f"{directory}/stop")
        store.pushpull("stop", mx.nd.array([done]), out=stop)
    mx.nd.waitall()
    come_to("exit")
    store.close()
    print("left")


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
