"""Jobs of scripts that know nothing of kvstore_ext."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.cluster import AT_ONCE

from .jobs import LAUNCH, Job

PACKAGE = {"PYTHONPATH": str(LAUNCH.parents[1])}

TRAIN = """
import sys
import mxnet as mx
from own_optimizers import Doubling

store = mx.kv.create(sys.argv[1])
store.set_optimizer(Doubling())
value = mx.nd.ones((3,))
store.init("weight", value)
if sys.argv[2:] == [str(store.rank)]:
    raise ValueError("one worker has had enough")
try:
    store.push("weight", value)
    store.pull("weight", out=value)
    print(type(store).__name__, store.num_workers, value.asnumpy().tolist(), flush=True)
finally:  # as a careful script does: it is here that a worker that was told says so
    store.close()
"""

# The servers have to import it, so they have to find it.
OPTIMIZER = """
import mxnet as mx


class Doubling(mx.optimizer.Optimizer):
    def create_state(self, index, weight):
        return None

    def update(self, index, weight, gradient, state):
        weight[:] += 2 * gradient
"""


def write_scripts(directory: Path) -> str:
    """Returns the script's path."""
    (directory / "scripts").mkdir()
    (directory / "scripts" / "train.py").write_text(TRAIN)
    (directory / "scripts" / "own_optimizers.py").write_text(OPTIMIZER)
    return str(directory / "scripts" / "train.py")


def server_command(script: str) -> str:
    """Another launcher may start all roles by one command, so here it is that of the workers."""
    command = [sys.executable, "-m", "kvstore_ext", "--trust", "own_optimizers", script, "p3"]
    return " ".join(shlex.quote(word) for word in command)


def test_a_stock_name_gives_our_store(job: Job, tmp_path: Path) -> None:
    script = write_scripts(tmp_path)
    arguments = ["-n", "2", "-s", "2", "--replace", "dist_sync=p3"]
    arguments += ["--server-command", server_command(script)]
    train = [sys.executable, script, "dist_sync"]
    assert job.run(*arguments, *train, environment=PACKAGE) == 0, job.errors
    assert sorted(job.lines) == [
        "[worker 0] P3Worker 2 [5.0, 5.0, 5.0]",
        "[worker 1] P3Worker 2 [5.0, 5.0, 5.0]",
    ]
    assert len(job.errors) == 3, job.errors
    assert re.fullmatch(r"launch: 2 workers and 2 servers on 1 host after [\d.]+ s", job.errors[1])
    assert re.search(r" s; workers sent [\d.]+ k?B and received [\d.]+ k?B$", job.errors[2])


def test_a_script_that_fails_tells_the_other_workers(job: Job, tmp_path: Path) -> None:
    script = write_scripts(tmp_path)
    arguments = ["-n", "2", "-s", "1", "--server-command", server_command(script)]
    # So that only what the worker says can end the others before the test's time is up.
    environment = {**PACKAGE, "KVSTORE_EXT_OPTIONS": json.dumps(AT_ONCE)}
    train = shlex.join([sys.executable, "-m", "kvstore_ext", script, "p3", "1"])
    # The one that fails is not the first to end, as those who are told may be sooner.
    late = "[ $KVSTORE_EXT_LAUNCH_RANK = 0 ] || sleep 2"
    train = f"{train}; status=$?; {late}; exit $status"
    assert job.run(*arguments, "sh", "-c", train, environment=environment) == 1
    reason = "worker 1: its script failed: ValueError: one worker has had enough"
    # Whoever hears it first ends the job, so not all need come to say it; the terminal need not
    # show that again.
    assert any(reason in job.log(name) for name in ("worker-0", "server-0", "scheduler-0"))
    assert not any("one worker has had enough" in line for line in job.lines), job.lines
    assert "launch: worker 1 on localhost ended with exit status 1" in job.errors
    assert job.errors[-1] == "    ValueError: one worker has had enough"
    assert job.log("worker-1").splitlines() == [
        "Traceback (most recent call last):",
        f'  File "{script}", line 11, in <module>',
        '    raise ValueError("one worker has had enough")',
        "ValueError: one worker has had enough",
    ]
    job.assert_gone()


@pytest.mark.parametrize("name", ["dist_sync", "dist_device_sync"])
def test_mxnets_own_store_is_refused_before_it_trains(job: Job, tmp_path: Path, name: str) -> None:
    script = write_scripts(tmp_path)
    assert job.run("-n", "1", sys.executable, script, name, environment=PACKAGE) == 1
    refusal = f"'{name}' is MXNet's own store, and the servers of this job are kvstore_ext's"
    assert refusal in job.log("worker-0")
    assert f"--replace {name}=p3" in job.log("worker-0")
    assert "KVStoreDist" not in job.log("worker-0")


def test_a_mistake_that_all_workers_make_is_shown_once(job: Job, tmp_path: Path) -> None:
    script = write_scripts(tmp_path)
    assert job.run("-n", "2", "-s", "1", sys.executable, script, "p4", environment=PACKAGE) == 1
    assert job.lines == []
    said = "there is no store 'p4'; did you mean 'p3'?"
    assert [said in line for line in job.errors].count(True) == 1
    assert said in job.errors[-1]


def test_a_worker_without_the_runner_stands_still_with_mxnets_own_store(
    job: Job, tmp_path: Path
) -> None:
    script = write_scripts(tmp_path)
    plain = f"import numpy_names; exec(open({script!r}).read())"
    train = shlex.join([sys.executable, "-c", plain, "dist_sync"])
    paths = [PACKAGE["PYTHONPATH"], str(Path(__file__).parent), str(tmp_path / "scripts")]
    environment = {"PYTHONPATH": ":".join(paths)}
    assert job.run("-n", "1", "sh", "-c", f"{train}; wait", environment=environment) == 1
    assert "a worker has MXNet's own store" in job.log("server-0")
    assert not any("each has trained alone" in line for line in job.errors), job.errors
    assert "KVStoreDist" not in job.log("worker-0")
