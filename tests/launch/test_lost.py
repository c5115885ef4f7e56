"""Any process of a launched job is lost, at any point: the launcher says whom, and nothing stays.

The points are those of tests/failures/test_matrix.py, which loses processes of jobs without it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster import Cluster as Network
from tests.failures.losses import SIGNALS
from tests.failures.matrix import CELLS, Cell, expected
from tests.support.paths import python_path
from tests.support.system_packages import need, needs_root

from .jobs import DONE, Job, environment
from .sshd import Sshd

TRAIN = Path(__file__).parents[1] / "support" / "tasks" / "losing.py"
SELECTED = [Cell("worker", "push", "stopped"), Cell("server", "sparse", "killed")]
CUT_OFF = [cell for cell in CELLS if cell.how == "cut off"]
TIMEOUT = 30  # seconds: the stores' option, for interpreters that a busy machine starts one by one


def start(job: Job, cell: Cell, *arguments: str) -> None:
    """A job of three workers and two servers, which comes to where the cell loses a process."""
    (job.directory / "points").mkdir()
    train = [sys.executable, str(TRAIN), str(job.directory / "points"), cell.role, cell.phase]
    job.start(
        *arguments, "-n", "3", "-s", "2", *train,
        environment={
            "KVSTORE_EXT_OPTIONS": json.dumps(cell.options(TIMEOUT)),
            "PYTHONPATH": python_path(),
            "OMP_NUM_THREADS": "1",
        },
    )


def go_on(job: Job, cell: Cell) -> None:
    """Lets the others train on without the lost process, and to their end if they can."""
    (job.directory / "points" / "go").touch()
    promise = expected(cell)
    if promise.well and promise.words:
        if cell.how == "stopped":
            job.wait_for_match(promise.words)
        (job.directory / "points" / "stop").touch()


def come_to(job: Job, cell: Cell) -> str:
    """Returns the name of the process to lose, once it is there."""
    there = f"] at {cell.phase}$"
    if cell.role == "worker":
        return job.wait_for_match(rf"(worker \d){there}")[1]
    for rank in range(3):
        job.wait_for_match(f"worker {rank}{there}")
    return {"server": "server 1", "scheduler": "scheduler 0"}[cell.role]


def _parameters(cells: list[Cell]) -> list[Any]:
    return [
        pytest.param(
            cell,
            marks=[] if cell in SELECTED else pytest.mark.all_only,
            id=cell.name,
        )
        for cell in cells
    ]


@pytest.mark.parametrize("cell", _parameters([cell for cell in CELLS if cell.how in SIGNALS]))
def test_a_process_is_lost(job: Job, cell: Cell) -> None:
    start(job, cell)
    victim = come_to(job, cell)
    os.kill(job.process(victim), SIGNALS[cell.how])
    go_on(job, cell)
    status, said = job.wait(), "\n".join(job.errors[1:])
    killed = f"launch: {victim} on localhost was killed by signal 9 (SIGKILL)"
    promise = expected(cell, TIMEOUT)
    if cell.how == "killed" and not (cell.role == "scheduler" and promise.well):
        assert status == 128 + signal.SIGKILL
        assert killed in job.errors
    elif promise.well:
        assert status == 0
        assert re.match(DONE, job.errors[-1])
        alive = f"launch: {victim} on localhost is still there "
        assert (f"{killed}; the job goes on" if cell.how == "killed" else alive) in said
    else:
        assert status == 1
        assert re.search(promise.words, said)
    job.assert_gone()


@needs_root
@pytest.mark.parametrize("cell", _parameters(CUT_OFF))
def test_its_host_is_cut_off(job: Job, cell: Cell) -> None:
    """The scheduler's is that of worker 0 and server 0 as well; the launcher is on another one."""
    need("tc")
    with Network(hosts=4) as network:
        launchers, *others = network.hosts
        job.entry = [*launchers.within, *job.entry]
        sshd = Sshd(job.directory, job.mark, ["0.0.0.0"])
        with sshd.serve_on(others):
            options = f"--launcher-options=-F {sshd.config} -o ServerAliveInterval=1"
            start(job, cell, "-H", sshd.hostfile([host.address for host in others]), options)
            variables = environment(job.process(come_to(job, cell)))
            lost, = (host for host in others if f"DMLC_NODE_HOST={host.address}" in variables)
            network.cut_off(lost)
            go_on(job, cell)
            assert job.wait() == 1
            address = re.escape(lost.address)
            ended = "is lost: the connection to its supervisor has ended"
            assert re.search(rf"launch: \w+ \d on {address} {ended}", "\n".join(job.errors))
            job.assert_gone()
