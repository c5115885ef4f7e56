"""--restarts: a job that has failed is started again, unless that would be in vain."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from pathlib import Path

import pytest
from kvstore_ext.report.main import main as report
from kvstore_ext.trace.main import main as trace
from kvstore_ext.trace.reading import TraceError, read

from tests.support.fork_desk import ForkDesk

from .jobs import REPORT, Job
from .sshd import HOSTS, Sshd
from .stand_ins import stand_ins

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


def test_each_attempt_has_a_trace_of_its_own(job: Job) -> None:
    script = "echo $KVSTORE_EXT_TRACE $KVSTORE_EXT_TRACE_STEPS >>traces; exit 1"
    asked = ["--trace", "t", "--trace-steps", "5:6", "--restarts", "1"]
    assert job.run("-n", "1", *SERVE, *asked, "sh", "-c", script) == 1
    directory = job.directory / "t"
    assert (job.directory / "traces").read_text().splitlines() == [
        f"{directory}/attempt-0 5:6",
        f"{directory}/attempt-1 5:6",
    ]


def test_all_causes_are_told_at_the_end(job: Job) -> None:
    why = "exit $((3 + KVSTORE_EXT_ATTEMPT))"
    assert job.run("-n", "1", *SERVE, "--restarts", "1", *fail_until(9, why)) == 4
    assert job.errors[-4:] == [
        "launch: all attempts have failed:",
        "    0: worker 0 on localhost ended with exit status 3",
        "    1: worker 0 on localhost ended with exit status 4",
        "launch: the job is not started again: --restarts 1 allows no more",
    ]


def test_a_script_that_fails_at_the_same_step_twice_is_not_started_again(job: Job) -> None:
    report = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no\\", \\"step\\": $step}'
    why = f'step=1; [ $KVSTORE_EXT_ATTEMPT = 0 ] || step=2; {REPORT} "{report}"; exit 1'
    assert job.run("-n", "1", *SERVE, "--restarts", "9", *fail_until(9, why)) == 1
    assert attempts(job.directory) == ["0", "1", "2"]
    assert job.errors[-1].endswith("not started again: its script has failed after 2 steps twice")


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


def test_so_it_is_with_the_steps_of_a_real_store(job: Job) -> None:
    (job.directory / "train.py").write_text(FAIL)
    with ForkDesk(job.directory / "desk").serve() as desk:
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        jobs = ["-n", "2", "-s", "1", "--restarts", "2", "--server-command", serve]
        assert job.run(*jobs, *desk.command, "train.py") == 1
    assert job.errors[-1].endswith("not started again: its script has failed after 6 steps twice")
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
    assert job.run("-n", "2", "-s", "1", sys.executable, "train.py") == 1
    assert "launch: worker 0 on localhost ended with exit status 1" in job.errors
    assert f"snapshot snapshots/{damaged.name} is not taken: manifest.json is no" in job.errors[-1]


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
    assert int(begins[2].split()[-1]) >= int(begins[1].split()[-1])
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
    job.start("-n", "1", *SERVE, "--restarts", "9", *fail_until(9))
    job.wait_for_error("launch: restart 3 of 9 in 4 s")
    job.signal(signal.SIGINT)
    assert job.wait() == 130
    assert attempts(job.directory) == ["0", "1", "2"]
    assert job.errors[-1] == "launch: SIGINT has ended the job"


def test_of_two_signals_in_that_wait_one_counts(job: Job) -> None:
    job.start("-n", "1", *SERVE, "--restarts", "9", *fail_until(9))
    job.wait_for_error("launch: restart 3 of 9 in 4 s")
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
    server = f"sh -c {shlex.quote(says)}"
    arguments = ["-n", "1", "--server-command", server, "--restarts", "3"]
    assert job.run(*arguments, "sh", "-c", f"{ATTEMPT} exec sleep 1000") == 1
    assert attempts(job.directory) == ["0"]
    assert ": no worker has opened a store" in job.errors[1]


def test_a_status_above_those_of_signals_is_the_scripts_own(job: Job) -> None:
    """sys.exit(-1) is 255: a script that fails so at the same step does so twice at most."""
    report = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no\\", \\"step\\": 7}'
    why = f'{REPORT} "{report}"; exit 255'
    assert job.run("-n", "1", *SERVE, "--restarts", "9", *fail_until(9, why)) == 255
    assert attempts(job.directory) == ["0", "1"]
    assert job.errors[-1].endswith("not started again: its script has failed after 7 steps twice")


def test_what_cannot_be_run_is_not_tried_again(job: Job) -> None:
    arguments = ["-n", "1", "--server-command", "no_such_program", "--restarts", "3"]
    assert job.run(*arguments, "sleep", "1000") == 127
    assert len(job.errors) == 2, job.errors


def test_a_host_that_is_gone_is_replaced(job: Job, sshd: Sshd) -> None:
    hostfile = job.directory / "some"
    gone = f"127.0.0.3:{sshd.port}"
    hostfile.write_text("\n".join([f"{HOSTS[0]}:{sshd.port}", gone, f"{HOSTS[1]}:{sshd.port}"]))
    arguments = ["-H", str(hostfile), "--interface", "lo", f"--launcher-options=-F {sshd.config}"]
    arguments += ["-n", "2", "-s", "1", *SERVE, "--no-secure"]
    arguments += ["--restarts", "1", "--hosts-needed", "2"]
    worker = "set -- $SSH_CONNECTION; echo $3"
    assert job.run(*arguments, "sh", "-c", worker) == 0, job.errors
    shown = [line for line in job.lines if "refused" not in line]
    assert sorted(shown) == [f"[worker {rank}] {host}" for rank, host in enumerate(HOSTS)]


@pytest.mark.parametrize("sync", [[], ["--sync-dst-dir", "there"]], ids=["ssh", "rsync"])
def test_a_host_that_never_answers_is_replaced(job: Job, tmp_path: Path, sync: list[str]) -> None:
    hostfile = job.directory / "some"
    hostfile.write_text("first\ngone\nsecond\n")
    (job.directory / "there").mkdir()
    arguments = ["-H", str(hostfile), "--interface", "lo", *sync, "-n", "2", "-s", "1", *SERVE]
    arguments += ["--restarts", "1", "--hosts-needed", "2", "--no-secure", "sh", "-c", "echo up"]
    environment = stand_ins(tmp_path / "programs")
    assert job.run(*arguments, environment=environment) == 0, job.errors
    assert "launch: restart 1 of 1 in 1 s" in job.errors
    assert "Connection refused; try: ssh gone true" in job.errors[1] or not sync
    assert sorted(line for line in job.lines if "up" in line) == ["[worker 0] up", "[worker 1] up"]


def test_no_more_hosts_are_used_than_are_needed(job: Job, tmp_path: Path) -> None:
    """Without --restarts, too: what --dry-run shows is what is started."""
    (job.directory / "some").write_text("first\ngone\n")
    arguments = ["-H", "some", "--interface", "lo", "-n", "2", "-s", "1", *SERVE, "--no-secure"]
    arguments += ["--hosts-needed", "1", "echo", "up"]
    assert job.run(*arguments, environment=stand_ins(tmp_path / "programs")) == 0, job.errors
    assert sorted(job.lines) == ["[worker 0] up", "[worker 1] up"]


def test_an_srun_that_starts_nothing_has_no_host_replaced(job: Job, tmp_path: Path) -> None:
    """It waits in a queue, say, and nobody knows which of the hosts it waits for."""
    environment = stand_ins(tmp_path / "programs")
    srun = tmp_path / "programs" / "srun"
    srun.write_text('#!/bin/sh\necho "$@" >>calls\nexec sleep 1000\n')
    srun.chmod(0o755)
    (job.directory / "some").write_text("first\nsecond\n")
    arguments = ["--launcher", "slurm", "-H", "some", "--interface", "lo", "-n", "1", *SERVE]
    arguments += ["--no-secure", "--start-timeout", "1", "--restarts", "1", "--hosts-needed", "1"]
    assert job.run(*arguments, "true", environment=environment) == 1
    calls = (job.directory / "calls").read_text()
    assert re.findall(r"--nodelist=(\S+)", calls) == ["first", "first"]


def test_a_host_that_others_miss_is_replaced(job: Job, tmp_path: Path) -> None:
    """Its connection ends, and a worker that waits for it has said whom it waits for."""
    hostfile = job.directory / "some"
    hostfile.write_text("first\nsecond\nthird\n")
    reason = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no sign of life from worker 1\\"}'
    first = f"""
        if [ $KVSTORE_EXT_LAUNCH_RANK = 1 ]
        then sleep 1; kill -9 $PPID; sleep 1000
        else {REPORT} "{reason}"; sleep 2; exit 1
        fi
    """
    worker = f"{ATTEMPT} [ $KVSTORE_EXT_ATTEMPT = 1 ] || {{ {first} }}"
    arguments = ["-H", str(hostfile), "--interface", "lo", "-n", "2", "-s", "1", *SERVE]
    arguments += ["--restarts", "1", "--hosts-needed", "2", "--no-secure", "sh", "-c", worker]
    assert job.run(*arguments, environment=stand_ins(tmp_path / "programs")) == 0, job.errors
    assert "worker 1 on second is lost" in "".join(job.errors)
    assert not any("on second" in line for line in job.errors[-1:])
    third = (job.log_dir / "attempt-1").iterdir()
    assert sorted(file.name for file in third)


# The launcher, but for how long it waits for the end of what does not answer.
IMPATIENT = """
import sys
from kvstore_ext.launcher import direct, job, main

direct.END_LIMIT = job.END_LIMIT = 2.0
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("answers", "is_missed", "then"),
    [(False, True, "third"), (True, True, "second"), (False, False, "second")],
    ids=["without power", "hangs", "busy"],
)
def test_a_host_that_others_miss_and_that_does_not_answer_is_replaced(
    job: Job, tmp_path: Path, answers: bool, is_missed: bool, then: str
) -> None:
    """As one without power, of which ssh hears later than others do. Either alone is not enough."""
    if not answers:
        job.entry = [sys.executable, "-c", IMPATIENT]
    (job.directory / "some").write_text("first\nsecond\nthird\n")
    reason = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no sign of life from worker 1\\"}'
    stop = "true" if answers else "kill -STOP $PPID"
    tell = f'{REPORT} "{reason}"' if is_missed else "true"
    worker = f"""
        if [ $KVSTORE_EXT_ATTEMPT = 1 ]
        then echo on $host
        elif [ $KVSTORE_EXT_LAUNCH_RANK = 1 ]
        then {stop}; touch there; exec sleep 1000
        else
            until [ -e there ]; do sleep 0.1; done
            {tell}
            exit 1
        fi
    """
    arguments = ["-H", "some", "--interface", "lo", "-n", "2", "-s", "1", *SERVE, "--no-secure"]
    arguments += ["--restarts", "1", "--hosts-needed", "2", "sh", "-c", worker]
    assert job.run(*arguments, environment=stand_ins(tmp_path / "programs")) == 0, job.errors
    shown = sorted(line for line in job.lines if line.startswith("[worker"))
    assert shown == ["[worker 0] on first", f"[worker 1] on {then}"]


@pytest.mark.parametrize(
    ("needed", "found"),
    [("3", "--hosts-needed: found 3, and a hostfile of 2 hosts"), ("1", "slots for only 1")],
)
def test_hosts_that_can_never_be_enough(job: Job, needed: str, found: str) -> None:
    hostfile = job.directory / "hosts"
    hostfile.write_text("one slots=4\ntwo slots=1\n")
    arguments = ["-n", "2", "-H", str(hostfile), "--hosts-needed", needed, "true"]
    assert job.run(*arguments) == 2
    assert found in job.errors[-1]
