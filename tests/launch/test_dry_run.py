"""--dry-run says what a job would start and starts nothing."""

from __future__ import annotations

import sys

import pytest
from kvstore_ext.launcher.far_ends import ENTRY
from kvstore_ext.launcher.job_key import NAME as JOB_KEY

from tests.support.system_packages import need

from .jobs import Job


def test_this_host(job: Job) -> None:
    arguments = ["-n", "2", "-s", "1", "--env", "A=b c", "--env-worker", "OMP_NUM_THREADS:3"]
    arguments += ["--env-server", "OMP_NUM_THREADS=1", "python", "train.py", "two words"]
    (job.directory / "train.py").write_text("")
    assert job.run("--dry-run", *arguments, environment={"PYTHONUNBUFFERED": "x"}) == 0
    assert job.errors == []
    assert not job.log_dir.exists()
    server = f"{sys.executable} -m kvstore_run --serve"
    assert [line for line in job.lines if " on localhost: " in line] == [
        "worker 0 on localhost: python -m kvstore_run train.py 'two words'",
        "worker 1 on localhost: python -m kvstore_run train.py 'two words'",
        f"server 0 on localhost: {server}",
        f"scheduler 0 on localhost: {server}",
    ]
    assert job.lines[job.lines.index("environment:") :] == [
        "environment:",
        "  all: A='b c'",
        "  all: DMLC_NUM_SERVER=1",
        "  all: DMLC_NUM_WORKER=2",
        "  all: KVSTORE_EXT_SERVERS=kvstore_ext",
        "  all: MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN=1",
        "  worker: DMLC_ROLE=worker",
        "  worker: OMP_NUM_THREADS=3",
        "  server: DMLC_ROLE=server",
        "  server: OMP_NUM_THREADS=1",
        "  scheduler: DMLC_ROLE=scheduler",
        "",
        "started by:",
        f"  {sys.executable} -S {ENTRY} --supervise",
    ]


def test_other_hosts(job: Job) -> None:
    (job.directory / "hosts").write_text("one:2222\ntwo\n")
    (job.directory / "servers").write_text("three\n")
    arguments = ["-H", "hosts", "-SH", "servers", "-n", "3", "-s", "2"]
    arguments += ["--launcher-options=-F cfg", "--launcher-options=-o A=b", "true"]
    environment = {"PYTHONUNBUFFERED": "x"}
    assert job.run("--dry-run", *arguments, environment=environment) == 0, job.errors
    assert "  all: PYTHONUNBUFFERED=x" in job.lines
    places = [line.partition(":")[0] for line in job.lines[:6]]
    assert places == [
        *("worker 0 on one", "worker 1 on two", "worker 2 on one"),
        *("server 0 on three", "server 1 on three", "scheduler 0 on three"),
    ]
    starts = job.lines[job.lines.index("started by:") + 1 :]
    hosts = [line.partition(" -- ")[2].partition(" ")[0] for line in starts]
    assert hosts == ["one", "two", "three"]
    assert all(" -F cfg -o A=b " in line for line in starts)
    assert "-p 2222" in starts[0]


def test_whom_a_directory_is_copied_to(job: Job) -> None:
    """Each host once that gets a process, with neither logs nor this job's trace."""
    need("rsync")
    (job.directory / "hosts").write_text("one slots=2\ntwo\n")
    (job.directory / "servers").write_text("one\nthree\n")
    arguments = ["-H", "hosts", "-SH", "servers", "--sync-dst-dir", "/there", "-n", "1", "-s", "1"]
    arguments += ["--log-dir", "launch-logs/now", "--trace", "traces/one", "--dry-run", "true"]
    assert job.run(*arguments) == 0, job.errors
    assert "  all: KVSTORE_EXT_TRACE=traces/one" in job.lines
    starts = job.lines[job.lines.index("started by:") + 1 :]
    [copy, start] = starts
    assert copy.endswith(" one:/there/")
    assert " --exclude=/launch-logs --exclude=/traces/one " in copy
    assert " -- one " in start


@pytest.mark.parametrize(("launcher", "program"), [("mpi", "mpirun -n 3"), ("slurm", "srun ")])
def test_one_command_for_all(job: Job, launcher: str, program: str) -> None:
    need(program.split()[0])
    arguments = ["--launcher", launcher, "-n", "1", "true"]
    assert job.run("--dry-run", *arguments) == 0, job.errors
    assert job.lines[0] == "worker 0 on a host of the batch job: true"
    assert f"  all: {JOB_KEY}, a secret" in job.lines
    assert job.lines[-1].startswith(f"  {program}")
    assert job.lines[-1].endswith(f"--join {launcher} LAUNCHER:PORT --secure")


def test_mpirun_chooses_where_servers_run(job: Job) -> None:
    need("mpirun")
    (job.directory / "hosts").write_text("one\ntwo\n")
    arguments = ["--launcher", "mpi", "-H", "hosts", "-n", "2", "-s", "1", "--dry-run", "true"]
    assert job.run(*arguments) == 0, job.errors
    assert [line.partition(":")[0] for line in job.lines[:4]] == [
        *("worker 0 on one", "worker 1 on two"),
        *("server 0 on a host of the hostfile", "scheduler 0 on a host of the hostfile"),
    ]
