"""SIGTERM to a process of a launched job, or to its launcher: it ends in order, and says so."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from typing import Iterator

import pytest

from .jobs import Job

TRAIN = """
import time
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
store.set_optimizer(mx.optimizer.create("test"))
for step in range(1000000):
    store.pushpull("weight", mx.nd.ones((3,)), out=value)
    value.wait_to_read()
    store.snapshot("early" if step < 5 else "snapshots", every=100000)
    if step == 9:
        print("trains", flush=True)
    time.sleep(0.01)
"""
SNAPSHOT = r"after step \d+, with a snapshot in snapshots"


@pytest.mark.parametrize("name", ["worker 1", "the launcher"])
def test_the_job_ends_with_a_snapshot(job: Job, name: str) -> None:
    (job.directory / "train.py").write_text(TRAIN)
    job.start("-n", "2", "-s", "1", sys.executable, "train.py")
    for rank in (0, 1):
        job.wait_for_line(f"[worker {rank}] trains")
    if name == "the launcher":
        job.signal(signal.SIGTERM)
        last = rf"launch: SIGTERM has ended the job {SNAPSHOT}"
    else:
        os.kill(job.process(name), signal.SIGTERM)
        told = "worker 1 on localhost was told to end by SIGTERM"
        last = rf"launch: {told}; the job has ended {SNAPSHOT}"
    assert job.wait() == 128 + signal.SIGTERM
    assert re.fullmatch(last, job.errors[-1]), job.errors
    [snapshot] = (job.directory / "snapshots").iterdir()
    assert (snapshot / "manifest.json").exists(), list(snapshot.iterdir())
    assert not (job.directory / "early").exists()
    job.assert_gone()


def test_a_worker_within_a_shell_ends_with_a_snapshot(job: Job) -> None:
    """The shell would end at once, and its supervisor all that it has started."""
    (job.directory / "train.py").write_text(f"import kvstore_ext\n{TRAIN}")
    train = f"{sys.executable} train.py"
    (job.directory / "run.sh").write_text(f"{train}\necho goes on\nsleep 1000\n")
    job.start("-n", "2", "-s", "1", "sh", "run.sh")
    for rank in (0, 1):
        job.wait_for_line(f"[worker {rank}] trains")
    job.signal(signal.SIGTERM)
    assert job.wait() == 128 + signal.SIGTERM
    last = rf"launch: SIGTERM has ended the job {SNAPSHOT}"
    assert re.fullmatch(last, job.errors[-1]), job.errors
    job.assert_gone()


HANDLES = """
import signal
import sys
import time
import kvstore_ext
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
until = []
signal.signal(signal.SIGTERM, lambda *_: until.append(time.time() + 5))
print("trains", flush=True)
while not until or time.time() < until[0]:
    store.pushpull("weight", mx.nd.ones((3,)), out=value)
    value.wait_to_read()
    time.sleep(0.01)
print("saved", flush=True)
"""


COMES_TO_NO_STEP = """
import time
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
store.set_optimizer(mx.optimizer.create("test"))
store.pushpull("weight", mx.nd.ones((3,)), out=value)
store.snapshot("snapshots", every=100000)
mx.nd.waitall()
print("evaluates", flush=True)
time.sleep(1000)
"""


def test_processes_have_as_long_as_notice_says(job: Job) -> None:
    (job.directory / "train.py").write_text(COMES_TO_NO_STEP)
    job.start("-n", "1", "-s", "1", "--notice", "6", sys.executable, "train.py")
    job.wait_for_line("[worker 0] evaluates")
    job.signal(signal.SIGTERM)
    assert job.wait() == 128 + signal.SIGTERM
    reason = "worker 0: told to end by SIGTERM; not all workers have come to their next snapshot"
    assert f"launch: SIGTERM has ended the job: {reason} in 5 s" in job.errors
    job.assert_gone()


def test_who_is_left_after_the_notice_is_ended(job: Job) -> None:
    worker = "trap 'echo told' TERM; echo up; while :; do sleep 0.1; done"
    job.start(
        "-n", "1", "--notice", "1", "--server-command", "sleep 1000", "sh", "-c", worker
    )
    job.wait_for_line("[worker 0] up")
    told = time.monotonic()
    job.signal(signal.SIGTERM)
    assert job.wait() == 128 + signal.SIGTERM
    assert time.monotonic() - told < 25  # it would be 30 s and more without the option
    assert "[worker 0] told" in job.lines
    job.assert_gone()


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A job that was told to end, whose worker takes its time."""
    job = Job(tmp_path_factory.mktemp("slow"))
    worker = "trap 'sleep 5; echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    try:
        job.start("-n", "1", "--server-command", "sleep 1000", "sh", "-c", worker)
        job.wait_for_line("[worker 0] up")
        job.signal(signal.SIGTERM)
        yield job
    finally:
        job.end()


@pytest.mark.usefixtures("slow")  # which ends meanwhile
def test_a_script_that_has_a_handler_of_its_own_decides(job: Job) -> None:
    (job.directory / "train.py").write_text(HANDLES)
    job.start("-n", "1", "-s", "1", sys.executable, "train.py")
    job.wait_for_line("[worker 0] trains")
    job.signal(signal.SIGTERM)
    assert job.wait() == 128 + signal.SIGTERM
    assert "[worker 0] saved" in job.lines, job.errors
    job.assert_gone()


def test_a_worker_that_takes_its_time_to_end(slow: Job) -> None:
    """It has more of it than one of a job that fails."""
    assert slow.wait() == 128 + signal.SIGTERM
    assert "[worker 0] saved" in slow.lines
    assert slow.errors[-1] == "launch: SIGTERM has ended the job"
    slow.assert_gone()
