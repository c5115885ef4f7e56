"""--restarts: a job that has failed is started again, unless that would be in vain."""

from __future__ import annotations

import re
import shlex
import signal
import socket
from pathlib import Path

import pytest
from kvstore_ext.report.main import main as report
from kvstore_ext.trace.main import main as trace
from kvstore_ext.trace.reading import TraceError, read

from tests.support.fork_desk import ForkDesk

from .jobs import REPORT, Job
from .patched import QUICK, SLOW, launcher_with

SERVE = ["--server-command", "true"]
# Appends its attempt to a file, and fails in those that come before the last argument.
ATTEMPT = "echo $KVSTORE_EXT_ATTEMPT $DMLC_PS_ROOT_PORT $KVSTORE_EXT_JOB >>attempts; "


def attempts(directory: Path) -> list[str]:
    return [line.split()[0] for line in (directory / "attempts").read_text().splitlines()]


def fail_until(attempt: int, why: str = "echo no; exit 3") -> list[str]:
    return ["sh", "-c", f"{ATTEMPT} [ $KVSTORE_EXT_ATTEMPT = {attempt} ] || {{ {why}; }}"]


def test_an_attempt_that_goes_well_ends_the_job_well(job: Job) -> None:
    assert job.run("-n", "1", *SERVE, "--restarts", "3", *fail_until(2)) == 0, job.errors
    assert attempts(job.directory) == ["0", "1", "2"]
    lines = (job.directory / "attempts").read_text().splitlines()
    _, ports, jobs = map(set, zip(*map(str.split, lines)))
    assert len(ports) == len(jobs) == 3
    for failed, logs in enumerate([job.log_dir, job.log_dir / "attempt-1"]):
        said = job.errors.index(f"launch: its last lines (all are in {logs}/worker-0.log):")
        assert job.errors[said - 1] == "launch: worker 0 on localhost ended with exit status 3"
        assert job.errors[said + 1] == "    no"
        assert job.errors[said + 2] == f"launch: restart {failed + 1} of 3 in {failed + 1} s"


@pytest.mark.usefixtures("quick")
def test_each_attempt_has_a_trace_of_its_own(job: Job) -> None:
    script = "echo $KVSTORE_EXT_TRACE $KVSTORE_EXT_TRACE_STEPS >>traces; exit 1"
    asked = ["--trace", "t", "--trace-steps", "5:6", "--restarts", "1"]
    assert job.run("-n", "1", *SERVE, *asked, "sh", "-c", script) == 1
    directory = job.directory / "t"
    assert (job.directory / "traces").read_text().splitlines() == [
        f"{directory}/attempt-0 5:6",
        f"{directory}/attempt-1 5:6",
    ]


@pytest.mark.usefixtures("quick")
def test_an_attempt_that_cannot_write_its_logs_is_not_the_last(job: Job) -> None:
    """A disk may be full for a while."""
    why = f"touch {job.log_dir}/attempt-1; exit 3"
    assert job.run("-n", "1", *SERVE, "--restarts", "2", *fail_until(2, why)) == 0, job.errors
    assert attempts(job.directory) == ["0", "2"]
    cannot = f"launch: cannot write the log {job.log_dir}/attempt-1: File exists"
    assert cannot in job.errors


@pytest.mark.usefixtures("quick")
def test_all_causes_are_told_at_the_end(job: Job) -> None:
    why = "exit $((3 + KVSTORE_EXT_ATTEMPT))"
    assert job.run("-n", "1", *SERVE, "--restarts", "1", *fail_until(9, why)) == 4
    assert job.errors[-4:] == [
        "launch: all attempts have failed:",
        "    0: worker 0 on localhost ended with exit status 3",
        "    1: worker 0 on localhost ended with exit status 4",
        "launch: the job is not started again: --restarts 1 allows no more",
    ]


@pytest.mark.usefixtures("quick")
def test_a_script_that_fails_at_the_same_step_twice_is_not_started_again(job: Job) -> None:
    report = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no\\", \\"step\\": $step}'
    why = f'step=1; [ $KVSTORE_EXT_ATTEMPT = 0 ] || step=2; {REPORT} "{report}"; exit 1'
    assert job.run("-n", "1", *SERVE, "--restarts", "9", *fail_until(9, why)) == 1
    assert attempts(job.directory) == ["0", "1", "2"]
    assert job.errors[-1].endswith("not started again: it has failed after 2 steps twice")


FAIL = """
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
for step in range(6):
    store.pushpull("weight", mx.nd.ones((3,)), out=value)
value.wait_to_read()
store.barrier()
if store.rank == 1:
    raise LookupError("no batch of this number")
store.barrier()
"""


@pytest.mark.usefixtures("quick")
def test_so_it_is_with_the_steps_of_a_real_store(job: Job) -> None:
    (job.directory / "train.py").write_text(FAIL)
    with ForkDesk(job.directory / "desk").serve() as desk:
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        jobs = ["-n", "2", "-s", "1", "--restarts", "2", "--server-command", serve]
        assert job.run(*jobs, *desk.command, "train.py") == 1
    assert job.errors[-1].endswith("not started again: it has failed after 6 steps twice")
    assert job.errors[-4:-1] == [
        "launch: all attempts have failed:",
        *(f"    {attempt}: worker 1 on localhost ended with exit status 1" for attempt in (0, 1)),
    ]


TRAIN = """
import os
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
store.set_optimizer(mx.optimizer.create("test", rescale_grad=0.5))
begin = store.restore("snapshots") or 0
attempt = int(os.environ["KVSTORE_EXT_ATTEMPT"])
print("attempt", attempt, "begins at", begin, flush=True)
for step in range(begin, 12):
    if (attempt, store.rank, step) in [(0, 1, 6), (1, 0, 10)]:
        os.kill(os.getpid(), 9)
    store.pushpull("weight", mx.nd.ones((3,)), out=value)
    value.wait_to_read()
    store.snapshot("snapshots", every=4)
    store.barrier()
print(value.asnumpy().tolist(), flush=True)
"""


REFUSING = """
import time
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((3,))
store.broadcast("weight", value, out=value)
try:
    store.restore("snapshots")
except mx.MXNetError:
    time.sleep(1 if store.rank == 0 else 0)  # so that the other one ends first
    raise
"""


def test_the_worker_that_has_refused_the_snapshots_is_named(job: Job) -> None:
    damaged = job.directory / "snapshots" / "snapshot-000000-step-4"
    damaged.mkdir(parents=True)
    (damaged / "manifest.json").write_text("{}")
    (job.directory / "train.py").write_text(REFUSING)
    with ForkDesk(job.directory / "desk").serve() as desk:
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        jobs = ["-n", "2", "-s", "1", "--server-command", serve]
        assert job.run(*jobs, *desk.command, "train.py") == 1
    assert "launch: worker 0 on localhost ended with exit status 1" in job.errors
    assert f"snapshot snapshots/{damaged.name} is not taken: manifest.json is no" in job.errors[-1]


@pytest.mark.usefixtures("quick")
def test_a_training_goes_on_from_its_snapshot(job: Job) -> None:
    (job.directory / "train.py").write_text(TRAIN)
    with ForkDesk(job.directory / "desk").serve() as desk:
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        jobs = ["-n", "2", "-s", "1", "--restarts", "2", "--trace", "traces"]
        assert job.run(*jobs, "--server-command", serve, *desk.command, "train.py") == 0, job.errors
    killed = [line for line in job.errors if line.endswith("killed by signal 9 (SIGKILL)")]
    assert [line.split(" on ")[0] for line in killed] == ["launch: worker 1", "launch: worker 0"]
    begins = [line for line in job.lines if line.startswith("[worker 0] attempt")]
    assert begins[0].endswith("0 begins at 0")
    assert begins[2].endswith(("2 begins at 4", "2 begins at 8"))
    assert "[worker 0] [12.0, 12.0, 12.0]" in job.lines
    traces = job.directory / "traces"
    for attempt in range(3):
        directory = str(traces / f"attempt-{attempt}")
        assert [process.name for process in read(directory).processes] == [
            "worker 0",
            "worker 1",
            "server 0",
        ]
        assert trace([directory]) == 0
        assert report([directory]) == 0
    with pytest.raises(TraceError, match="has traces of two jobs"):
        read(traces)


def test_a_signal_ends_the_wait_for_the_next_attempt(job: Job) -> None:
    job.entry = launcher_with(SLOW)
    job.start("-n", "1", *SERVE, "--restarts", "9", *fail_until(9))
    job.wait_for_error("launch: restart 1 of 9 in 4 s")
    job.signal(signal.SIGINT)
    assert job.wait() == 130
    assert attempts(job.directory) == ["0"]
    assert job.errors[-1] == "launch: SIGINT has ended the job"


def test_of_two_signals_in_that_wait_one_counts(job: Job) -> None:
    job.entry = launcher_with(SLOW)
    job.start("-n", "1", *SERVE, "--restarts", "9", *fail_until(9))
    job.wait_for_error("launch: restart 1 of 9 in 4 s")
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        job.signal(number)
    assert job.wait() in (130, 143)
    assert re.fullmatch("launch: SIG(INT|TERM) has ended the job", job.errors[-1])
    assert not any("InvalidState" in line for line in job.errors), job.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_a_signal_has_ended_is_not_started_again(
    job: Job, number: signal.Signals
) -> None:
    job.start("-n", "1", *SERVE, "--restarts", "9", "sh", "-c", f"{ATTEMPT} echo up; sleep 1000")
    job.wait_for_line("[worker 0] up")
    job.signal(number)
    assert job.wait() == 128 + number
    assert attempts(job.directory) == ["0"]
    assert job.errors[-1] == f"launch: {number.name} has ended the job"


def test_a_job_of_scripts_that_open_no_store_is_not_started_again(job: Job) -> None:
    reason = "within 8 s not all of 1 workers and 1 servers have come to the scheduler at here:1"
    says = f"""{REPORT} '{{"joining": true}}' '{{"failed": "{reason}"}}'; exit 1"""
    server = f"sh -c {shlex.quote(f'until [ -e attempts ]; do sleep 0.1; done; {says}')}"
    arguments = ["-n", "1", "--server-command", server, "--restarts", "3"]
    assert job.run(*arguments, "sh", "-c", f"{ATTEMPT} exec sleep 1000") == 1
    assert attempts(job.directory) == ["0"]
    assert ": no worker has opened a store" in job.errors[1]


@pytest.mark.usefixtures("quick")
def test_a_status_above_those_of_signals_is_the_scripts_own(job: Job) -> None:
    """sys.exit(-1) is 255: a script that fails so at the same step does so twice at most."""
    report = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no\\", \\"step\\": 7}'
    why = f'{REPORT} "{report}"; exit 255'
    assert job.run("-n", "1", *SERVE, "--restarts", "9", *fail_until(9, why)) == 255
    assert attempts(job.directory) == ["0", "1"]
    assert job.errors[-1].endswith("not started again: it has failed after 7 steps twice")


@pytest.mark.usefixtures("quick")
def test_a_scheduler_that_its_options_end_twice_is_not_started_again(job: Job) -> None:
    environment = {"KVSTORE_EXT_OPTIONS": '{"silence": 0}'}
    arguments = ["-n", "1", "--restarts", "9", "sh", "-c", f"{ATTEMPT} exec sleep 1000"]
    assert job.run(*arguments, environment=environment) == 1
    assert attempts(job.directory) == ["0", "1"]
    assert any("option silence is 0" in line for line in job.errors)
    assert job.errors[-1].endswith("not started again: it has failed before the first step twice")


# The host has room for the supervisors' processes only the second time, as with other users' gone.
FULL = """
import errno
begin, tries = direct.asyncio.create_subprocess_exec, []
async def begin_later(*command, **how):
    tries.append(command)
    if len(tries) == 1:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
    return await begin(*command, **how)
direct.asyncio.create_subprocess_exec = begin_later
"""


def test_a_host_without_room_for_a_process_is_tried_again(job: Job) -> None:
    job.entry = launcher_with(QUICK, FULL)
    assert job.run("-n", "1", *SERVE, "--restarts", "1", *fail_until(1)) == 0, job.errors
    assert attempts(job.directory) == ["1"]
    assert "cannot be run: Resource temporarily unavailable" in "".join(job.errors)


@pytest.mark.usefixtures("quick")
def test_a_port_that_another_job_still_has_is_tried_again(job: Job) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["-n", "1", *SERVE, "--port", str(port), "--restarts", "1", "true"]
        assert job.run(*arguments) == 1
    assert sum(f"cannot listen at 127.0.0.1 on port {port}" in each for each in job.errors) == 4
    assert job.errors[-1].endswith("--restarts 1 allows no more")


def test_what_cannot_be_run_is_not_tried_again(job: Job) -> None:
    arguments = ["-n", "1", "--server-command", "no_such_program", "--restarts", "3"]
    assert job.run(*arguments, "sleep", "1000") == 127
    assert len(job.errors) == 2, job.errors


@pytest.mark.usefixtures("quick")
def test_what_has_run_before_is_tried_again(job: Job) -> None:
    """It lies on a file system that will be mounted again, say."""
    script = job.directory / "run.sh"
    script.write_text("#!/bin/sh\nrm run.sh\nexit 3\n")
    script.chmod(0o755)
    assert job.run("-n", "1", *SERVE, "--restarts", "2", "./run.sh") == 127
    missing = "worker 0 on localhost could not be started: No such file or directory: ./run.sh"
    assert job.errors[-4:] == [
        "    0: worker 0 on localhost ended with exit status 3",
        f"    1: {missing}",
        f"    2: {missing}",
        "launch: the job is not started again: --restarts 2 allows no more",
    ]
