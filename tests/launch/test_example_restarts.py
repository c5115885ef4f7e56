"""--restarts with the examples: one whose worker is killed goes on from a snapshot to its end."""

from __future__ import annotations

import os
import re
import signal
import sys
import time

import pytest

from tests.support.paths import EXAMPLES, python_path

from .jobs import DONE, LIMIT, Job

pytestmark = pytest.mark.all_only

TINY_NETWORK = '{"embedding": 16, "hidden": 16}'
EXAMPLE = {
    "train_image.py": ["--kv-store", "p3", "--epochs", "3", "--snapshot-every", "5"],
    "train_sockeye.py": [
        *("--kv-store", "p3", "--epochs", "2", "--snapshot-every", "1", "--batch-size", "128"),
        *("--model-options", TINY_NETWORK, "--text-scale", "0.01", "--beam", "2"),
        *("--bleu-sentences", "4", "--examples", "1"),
    ],
    "train_ec_dnn.py": [
        *("--method", "ec_dnn_m", "--epochs", "3", "--tau", "5", "--p", "1", "--p-of", "training"),
        *("--snapshot-every", "10"),
    ],
}


@pytest.mark.parametrize("script", EXAMPLE)
def test_an_example_that_loses_a_worker_ends_well(job: Job, script: str) -> None:
    snapshots = job.directory / "snapshots"
    train = [str(EXAMPLES / script), *EXAMPLE[script], "--snapshot", str(snapshots)]
    environment = {"PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1"}
    jobs = ["-n", "2", "-s", "1", "--restarts", "1"]
    job.start(*jobs, sys.executable, *train, environment=environment)
    latest = time.monotonic() + LIMIT
    while not list(snapshots.glob("*/manifest.json")):
        assert job.runs(), (job.lines, job.errors)
        assert time.monotonic() < latest, job.errors
        time.sleep(0.02)
    os.kill(job.process("worker 1"), signal.SIGKILL)
    assert job.wait() == 0, job.errors
    assert "launch: worker 1 on localhost was killed by signal 9 (SIGKILL)" in job.errors
    assert any(line.startswith("launch: restart 1 of 1 in ") for line in job.errors)
    goes_on = [line for line in job.lines if f" in {snapshots}" in line]
    assert len(goes_on) == 1, job.lines
    assert "goes on from the snapshot of step " in goes_on[0]
    assert re.match(DONE, job.errors[-1])
