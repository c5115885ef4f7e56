"""Any process of a launched job is lost, at any point: the launcher says whom, and nothing stays.

The points are those of tests/failures/test_matrix.py, which loses processes of jobs without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from benchmarks.cluster import Cluster as Network
from tests.failures.losses import SIGNALS
from tests.failures.matrix import CELLS, Cell, expected
from tests.support import forked
from tests.support.fork_desk import ForkDesk
from tests.support.paths import python_path
from tests.support.system_packages import need, needs_root

from .jobs import DONE, Job, environment
from .sshd import Sshd

TRAIN = Path(__file__).parents[1] / "support" / "tasks" / "losing.py"
SELECTED = [Cell("worker", "push", "stopped"), Cell("server", "sparse", "killed")]
CUT_OFF = [cell for cell in CELLS if cell.how == "cut off"]
TIMEOUT = 30  # seconds: the stores' option, for interpreters that a busy machine starts one by one


@contextlib.contextmanager
def desk_of(job: Job) -> Iterator[ForkDesk | None]:
    """Which starts the job's processes as forks; none where all is to be started as users do."""
    if forked.as_users_do:
        yield None
        return
    with ForkDesk(job.directory / "desk").serve() as desk:
        yield desk


def start(job: Job, cell: Cell, *arguments: str, desk: ForkDesk | None = None) -> None:
    """A job of three workers and two servers, which comes to where the cell loses a process."""
    (job.directory / "points").mkdir()
    python, serve = [sys.executable], []
    if desk is not None:
        python = desk.command
        serve = ["--server-command", shlex.join([*python, "-m", "kvstore_ext.server"])]
    train = [*python, str(TRAIN), str(job.directory / "points"), cell.role, cell.phase]
    job.start(
        *arguments, "-n", "3", "-s", "2", *serve, *train,
        environment={
            "KVSTORE_EXT_OPTIONS": json.dumps(cell.options(TIMEOUT)),
            "PYTHONPATH": python_path(),
            "OMP_NUM_THREADS": "1",
        },
    )


def lose(job: Job, victim: str, number: int, desk: ForkDesk | None) -> None:
    """Sends a process a signal; where it stands for a fork, that gets it as well."""
    role, rank = victim.split()
    wanted = {"DMLC_ROLE": role, "KVSTORE_EXT_LAUNCH_RANK": rank}
    forks = desk.environments if desk is not None else {}
    own = [fork for fork, variables in forks.items() if wanted.items() <= variables.items()]
    assert len(own) == (desk is not None)
    for process in (job.process(victim), *own):
        with contextlib.suppress(ProcessLookupError):  # a fork that has ended with the first
            os.kill(process, number)


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
    with desk_of(job) as desk:
        start(job, cell, desk=desk)
        victim = come_to(job, cell)
        lose(job, victim, SIGNALS[cell.how], desk)
        go_on(job, cell)
        status = job.wait()
    said = "\n".join(job.errors[1:])
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
