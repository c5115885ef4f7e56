"""SIGTERM to a process without a cluster: it ends with a last snapshot if it takes any."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support import ending
from tests.support.paths import python_path

BEGIN = """
import time
import kvstore_ext
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
store.set_optimizer(mx.optimizer.create("test"))
"""
STEP = """
store.pushpull("weight", mx.nd.ones((3,)), out=value)
value.wait_to_read()
"""
TAKE = 'store.snapshot("snapshots", every=100000)\n'
READY = 'print("ready", flush=True)\n'
TRAIN = f"""
for step in range(10**9):
    {textwrap.indent(STEP + TAKE, "    ")}
    if step == 1:
        {READY}
    time.sleep(0.01)
"""
LIMIT = 60.0  # seconds


def told(script: str, directory: Path) -> tuple[int, list[str]]:
    """Tells a script to end once it is ready; returns its status, and what kvstore_ext says."""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=ending.with_parent(),
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.wait()
    lines = [line for line in said.splitlines() if line.startswith("kvstore_ext: ")]
    return process.returncode, [line for line in lines if "no launcher" not in line]


def last_snapshot(directory: Path) -> Path:
    """The one snapshot that is there, whole."""
    (snapshot,) = directory.iterdir()
    assert (snapshot / "manifest.json").exists()
    return snapshot


def test_it_ends_with_a_snapshot(tmp_path: Path) -> None:
    status, said = told(BEGIN + TRAIN, tmp_path)
    assert status == 128 + signal.SIGTERM
    assert said[0] == "kvstore_ext: told to end by SIGTERM; the job ends after a snapshot"
    step = last_snapshot(tmp_path / "snapshots").name.rpartition("-")[2]
    assert said[1] == f"kvstore_ext: the job ends after step {step}, with a snapshot in snapshots"


FORKED = f"""
import os
import signal
import sys

{BEGIN}{STEP}{TAKE}mx.nd.waitall()
child = os.fork()
if child:
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    sys.exit(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
{BEGIN}
for step in range(10**9):
    {textwrap.indent(STEP + TAKE.replace("snapshots", "of-child"), "    ")}
    if step == 1:
        {READY}
    time.sleep(0.01)
"""


def test_a_fork_that_has_a_store_of_its_own_takes_its_own_last_snapshot(tmp_path: Path) -> None:
    status, _ = told(FORKED, tmp_path)
    assert status == 128 + signal.SIGTERM
    last_snapshot(tmp_path / "of-child")


TWO = f"""
import time
import kvstore_ext
import mxnet as mx

stores = [mx.kv.create("p3") for _ in range(2)]
value = mx.nd.zeros((3,))
for store in stores:
    store.broadcast("weight", value, out=value)
    store.set_optimizer(mx.optimizer.create("test"))
for step in range(10**9):
    for number, store in enumerate(stores):
        store.pushpull("weight", mx.nd.ones((3,)), out=value)
        store.snapshot(f"snapshots-{{number}}", every=100000)
    if step == 1:
        {READY}
    time.sleep(0.01)
"""


def test_all_of_its_stores_have_last_snapshots(tmp_path: Path) -> None:
    status, _ = told(TWO, tmp_path)
    assert status == 128 + signal.SIGTERM
    for number in range(2):
        last_snapshot(tmp_path / f"snapshots-{number}")


def test_one_that_comes_to_no_snapshot_ends_all_the_same(tmp_path: Path) -> None:
    hasty = 'import os\nos.environ["KVSTORE_EXT_NOTICE"] = "0.6"\n'
    script = f"{hasty}{BEGIN}{STEP}{TAKE}{READY}mx.nd.waitall()\ntime.sleep({LIMIT})\n"
    status, said = told(script, tmp_path)
    assert status == 128 + signal.SIGTERM
    assert said[-1].endswith("the script has not come to its next snapshot in 0.5 s")


def test_a_clean_up_that_takes_too_long_is_not_said_to_wait_for_a_snapshot(tmp_path: Path) -> None:
    hasty = 'import os\nos.environ["KVSTORE_EXT_NOTICE"] = "0.6"\n'
    other = "other = mx.kv.create('p3')\n"
    closes = f"{STEP}{TAKE}store.close()\n"
    clean_up = f"try:\n    {READY}    time.sleep({LIMIT})\nfinally:\n    time.sleep({LIMIT})\n"
    status, said = told(f"{hasty}{BEGIN}{other}{closes}{clean_up}", tmp_path)
    assert status == 128 + signal.SIGTERM
    assert said[-1].endswith("the script has not ended in 0.5 s")
    assert not any("snapshot" in line for line in said), said


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ("", -signal.SIGTERM, []),
        (
            f"{STEP}{TAKE}store.close()\n",
            128 + signal.SIGTERM,
            ["kvstore_ext: worker 0: told to end by SIGTERM"],
        ),
    ],
    ids=["none", "none any more"],
)
def test_one_that_takes_no_snapshots_ends_at_once(
    more: str, status: int, said: list[str], tmp_path: Path
) -> None:
    assert told(f"{BEGIN}{more}{READY}time.sleep({LIMIT})\n", tmp_path) == (status, said)
