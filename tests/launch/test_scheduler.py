"""A job whose scheduler is gone goes on, and ends well."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest

from .jobs import DONE, REPORT, Job

TRAIN = """
import os
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.ones((3,))
store.init("weight", value)
print("trains", flush=True)
while not os.path.exists("stop"):
    store.pushpull("weight", 2 * value, out=mx.nd.zeros((3,)))
    mx.nd.waitall()
"""
KILLED = "launch: scheduler 0 on localhost was killed by signal 9 (SIGKILL)"


def test_a_job_whose_scheduler_is_killed_goes_on(job: Job) -> None:
    (job.directory / "train.py").write_text(TRAIN)
    job.start("-n", "1", sys.executable, "train.py")
    job.wait_for_line("[worker 0] trains")
    os.kill(job.process("scheduler 0"), signal.SIGKILL)
    job.wait_for_error(re.escape(f"{KILLED}; the job goes on without it"))
    (job.directory / "stop").touch()
    assert job.wait() == 0, job.errors
    assert re.match(DONE, job.errors[-1])
    job.assert_gone()


# In place of our servers' command.
SERVE = """
import os, signal, time

while not os.path.exists("told"):
    time.sleep(0.05)
if os.environ["DMLC_ROLE"] == "scheduler":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("stock", "worker"),
    [
        (True, f"""{REPORT} '{{"joined": true}}'; touch told; sleep 1000"""),
        (False, "touch told; sleep 1000"),
    ],
)
def test_jobs_that_need_their_scheduler(job: Job, stock: bool, worker: str) -> None:
    """Those of MXNet's own servers, and one that does not stand yet."""
    (job.directory / "kvstore_run.py").write_text(SERVE)
    servers = ["--server-command", f"{sys.executable} kvstore_run.py"] if stock else []
    environment = {"PYTHONPATH": str(job.directory)}
    assert job.run("-n", "1", *servers, "sh", "-c", worker, environment=environment) == 137
    assert job.errors[-1] == KILLED
    job.assert_gone()


FAILING = f"""
{REPORT} '{{"joined": true}}'
if [ $KVSTORE_EXT_LAUNCH_RANK = 0 ]; then
    until [ -e fail ]; do sleep 0.05; done
    {REPORT} '{{"failed": "no sign of life from worker 1, within 10 s"}}'
    exit 1
fi
sleep 1000
"""


def test_a_scheduler_that_a_job_was_spared_is_not_to_blame_for_what_follows(job: Job) -> None:
    (job.directory / "kvstore_run.py").write_text(SERVE)
    environment = {"PYTHONPATH": str(job.directory)}
    job.start("-n", "2", "-s", "1", "sh", "-c", FAILING, environment=environment)
    job.wait_for_error("launch: 2 workers and 1 server on .*")
    (job.directory / "told").touch()
    job.wait_for_error(re.escape(f"{KILLED}; the job goes on without it"))
    (job.directory / "fail").touch()
    assert job.wait() == 1
    assert "no sign of life from worker 1" in job.errors[-1]
    job.assert_gone()
