"""The launcher names the process that was the cause, and shows what that one printed."""

from __future__ import annotations

import asyncio
import json
import shlex
from types import SimpleNamespace
from typing import Any

import pytest
from kvstore_ext.launcher.blame import accused, can_be_spared
from kvstore_ext.launcher.processes import Ending
from kvstore_ext.launcher.standing import Standing

from .jobs import LIMIT, REPORT, STAY, Job


@pytest.mark.parametrize(
    ("reason", "names"),
    [
        ("worker 1: its script failed: ValueError: worker 7 said so", ["worker 1"]),
        ("worker 1: key 'w' cannot be compressed: it has NaN", ["worker 1"]),
        ("worker 1: worker 0 can go on from no snapshot in d, as it says", ["worker 0"]),
        ("server 0: worker 1 has left, but worker 0 pushed key 'w', round 4", ["worker 1"]),
        ("server 0: worker 1, 12 has not pushed key 'w'", ["worker 1", "worker 12"]),
        ("server 0: workers 1, 2 and 3 have not", ["worker 1", "worker 2", "worker 3"]),
        ("worker 0: no answer from server 1 for key 'w', round 2, within 10 s", ["server 1"]),
        ("worker 0: no sign of life from server 1, within 10 s (server 1 on a)", ["server 1"]),
        ("server 0: worker 1 has not been heard of for 3 s (worker 1 on b)", ["worker 1"]),
        ("worker 0: within 10 s server 0, 1 has not answered", ["server 0", "server 1"]),
        ("server 0 of this job is not a P3Server: start servers with", ["server 0"]),
        ("server 1: KeyError: 'worker'", ["server 1"]),
        ("server 0: workers opened different stores: worker 0 has a, worker 1 has b", []),
        ("server 0: workers initialised a key differently: worker 0 key a, worker 1 key b", []),
        ("server 1: 2 messages of worker 0 did not arrive within 30 s, although later", []),
        ("worker 1: 1 message of server 0 did not arrive within 30 s, although later", []),
        ("the scheduler at 127.0.0.1:9000 cannot be reached within 3 s", []),
        ("", []),
    ],
)
def test_whom_a_reason_blames(reason: str, names: list[str]) -> None:
    assert accused(reason) == names


def running(
    role: str, status: int | None, joined: bool = True, reason: str = "", joining: bool = True
) -> Any:
    """A process that has ended with this status, or runs."""
    ended = SimpleNamespace(done=lambda: status is not None, result=lambda: Ending(status or 0, ""))
    account = SimpleNamespace(
        joining=joining, joined=SimpleNamespace(done=lambda: joined), reason=reason
    )
    return SimpleNamespace(process=SimpleNamespace(role=role), ended=ended, account=account)


@pytest.mark.parametrize(
    ("role", "statuses", "joined", "spared"),
    [
        ("server", [0, 0], True, True),
        ("scheduler", [0, 0], True, True),
        ("server", [0, None], True, False),
        ("scheduler", [0, None], True, True),
        ("server", [0, 1], True, False),
        ("server", [0, 0], False, False),
        ("scheduler", [0, None], False, False),
    ],
)
def test_a_failure_that_the_job_does_without(
    role: str, statuses: list[int | None], joined: bool, spared: bool
) -> None:
    failed = running(role, 143)
    workers = [running("worker", status, joined) for status in statuses]
    assert can_be_spared(failed, [failed, *workers], own_servers=True) == spared
    assert not can_be_spared(failed, [failed, *workers], own_servers=False)


def test_a_worker_whose_reports_do_not_arrive_has_joined_with_the_others() -> None:
    silent = running("worker", None, joined=False, joining=False)
    scheduler, server = running("scheduler", 143, joined=False, joining=False), running("server", 0)
    processes = [running("worker", None), silent, server, scheduler]
    assert can_be_spared(scheduler, processes, own_servers=True)
    said: list[str] = []
    standing = Standing(processes, processes, said.append, every=0.0, own_servers=True)
    asyncio.run(asyncio.wait_for(standing.remind(), LIMIT))
    assert said == []
    coming = running("worker", None, joined=False)
    assert not can_be_spared(scheduler, [*processes, coming], own_servers=True)


SAID = "touch said-$KVSTORE_EXT_LAUNCH_RANK"


def failing(reason: str, status: int = 1) -> str:
    """Returns a shell's commands: say why, then fail."""
    return f"{REPORT} {shlex.quote(json.dumps({'failed': reason}))}; {SAID}; exit {status}"


def by_rank(*commands: str) -> list[str]:
    """Returns a command in which each worker runs the commands of its rank."""
    cases = " ".join(f"{rank}) {command};;" for rank, command in enumerate(commands))
    return ["sh", "-c", f"case $KVSTORE_EXT_LAUNCH_RANK in {cases} esac"]


def once(*ranks: int) -> str:
    """Returns a shell's command: wait until the workers of these ranks have come to SAID."""
    files = " && ".join(f"test -e said-{rank}" for rank in ranks)
    return f"until {files}; do sleep 0.05; done"


def run(job: Job, *commands: str) -> int:
    counts = ["-n", str(len(commands)), "-s", "1"]
    return job.run(*counts, "--server-command", STAY, *by_rank(*commands))


SCRIPT_FAILED = "worker 2: its script failed: ValueError: no"


def test_the_cause_ends_last(job: Job) -> None:
    told = f"echo I was told; {failing(SCRIPT_FAILED)}"
    cause = f"{once(0, 1)}; echo 'ValueError: no'; {failing(SCRIPT_FAILED, 3)}"
    assert run(job, told, told, cause) == 3
    assert job.errors[1:] == [
        "launch: worker 2 on localhost ended with exit status 3",
        f"launch: its last lines (all are in {job.log_dir}/worker-2.log):",
        "    ValueError: no",
    ]
    job.assert_gone()


def test_the_terminal_shows_the_cause_once(job: Job) -> None:
    reason = "worker 1: its script failed: ValueError: no"
    echo = failing(reason).replace(";", f"; echo {reason};", 1)
    cause = failing(reason, 3).replace(";", "; seq 30; echo ValueError: no;", 1)
    # What has been printed a moment before counts as printed with the failure.
    trains = "echo trains; sleep 0.5"
    assert run(job, f"{trains}; {echo}", f"{trains}; {once(0)}; {cause}") == 3
    shown = [line for line in job.lines if line.startswith("[worker")]
    assert sorted(shown) == ["[worker 0] trains", "[worker 1] trains"]
    assert job.errors[3:] == [*(f"    {number}" for number in range(1, 31)), "    ValueError: no"]
    assert reason in job.log("worker-0")
    job.assert_gone()


def test_a_process_that_goes_on_is_shown(job: Job) -> None:
    """It has told of a failure that its script has got over."""
    told = failing(SCRIPT_FAILED, 0).replace("exit", "echo goes on; exit")
    arguments = ["-n", "1", "--server-command", "true", "sh", "-c", told]
    assert job.run(*arguments) == 0
    assert job.lines == ["[worker 0] goes on"]


def test_a_failure_that_the_script_has_got_over_is_no_reason(job: Job) -> None:
    """It has opened another store since, and ends for a reason that it tells to nobody."""
    told = json.dumps({"failed": SCRIPT_FAILED}), json.dumps({"joined": True, "rank": 0})
    script = f"{REPORT} {' '.join(map(shlex.quote, told))}; {once(1)}; exit 3"
    waits = f"{SAID}; exec sleep 1000"
    assert run(job, script, waits, waits) == 3
    assert job.errors[1:] == ["launch: worker 0 on localhost ended with exit status 3"]
    job.assert_gone()


def test_the_cause_tells_nothing(job: Job) -> None:
    told = failing("server 0: worker 1 has not pushed key 'w', round 4, within 9 s")
    assert run(job, told, f"{once(0)}; kill -SEGV $$") == 139
    assert job.errors[1:] == ["launch: worker 1 on localhost was killed by signal 11 (SIGSEGV)"]
    job.assert_gone()


def test_the_cause_hangs(job: Job) -> None:
    reason = "server 0: worker 1 has not pushed key 'w', round 4, which worker 0 did, within 9 s"
    hangs = f"echo I wait; {SAID}; exec sleep 1000"
    assert run(job, f"{once(1)}; {failing(reason, 5)}", hangs) == 5
    assert job.errors[1:] == [
        f"launch: worker 0 on localhost ended with exit status 5: {reason}",
        f"launch: the last lines of worker 1 (all are in {job.log_dir}/worker-1.log):",
        "    I wait",
    ]
    job.assert_gone()


def test_the_cause_ended_well(job: Job) -> None:
    reason = "server 0: worker 1 has left, but worker 0 pushed key 'w', round 4"
    assert run(job, f"{once(1)}; echo why; {failing(reason)}", f"echo done; {SAID}") == 1
    assert job.errors[1:] == [
        f"launch: worker 0 on localhost ended with exit status 1: {reason}",
        f"launch: its last lines (all are in {job.log_dir}/worker-0.log):",
        "    why",
    ]
    job.assert_gone()


def test_the_first_that_fails_tells_nothing(job: Job) -> None:
    """It may have been told, and a process that has been the cause is named by another."""
    reason = shlex.quote(json.dumps({"failed": "server 0: worker 1 has left"}))
    told = f"{REPORT} {reason}; {SAID}; exec sleep 1000"
    assert run(job, f"{once(2)}; exit 1", f"{once(2)}; sleep 0.7; exit 3", told) == 3
    assert job.errors[1:] == ["launch: worker 1 on localhost ended with exit status 3"]
    job.assert_gone()


def test_a_rank_that_is_not_the_launchers(job: Job) -> None:
    """Processes speak of each other by the ranks that the cluster has given them."""
    joined = [shlex.quote(json.dumps({"joined": True, "rank": rank})) for rank in (1, 0)]
    told = failing("worker 1: its script failed: ValueError: no")
    cause = f"{REPORT} {joined[0]}; {SAID}; {once(1)}; {told.replace('exit 1', 'exit 3')}"
    assert run(job, cause, f"{REPORT} {joined[1]}; {once(0)}; {told}") == 3
    assert job.errors[-1] == "launch: worker 0 on localhost ended with exit status 3"
    job.assert_gone()
