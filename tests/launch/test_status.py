"""What is said of a job, from what its processes have reported."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from kvstore_ext.launcher.hosts import Host
from kvstore_ext.launcher.processes import Process, ended_with
from kvstore_ext.launcher.running import Running
from kvstore_ext.launcher.status import Status, line


def follow_worker(*reports: dict[str, float]) -> list[dict[str, Any]]:
    """Returns what is said of a worker after each of its reports, which come a second apart."""

    async def look() -> list[dict[str, Any]]:
        status = Status()
        process = Process("worker", 0, Host("here"), (), {})
        worker = Running(process, "here", None, None)  # type: ignore[arg-type]
        found = []
        for at, report in enumerate(reports):
            worker.account.status = {"at": float(at), **report}
            found.append(status.look([worker]))
        return found

    return asyncio.run(look())


def follow(*reports: dict[str, float], ended: tuple[int, ...] = (), silence: float = 0) -> Any:
    """Returns what is said of workers that each report this, ten seconds after zeros; of which some
    have ended, and nobody has said anything for so many seconds."""

    async def look() -> dict[str, Any]:
        status = Status()
        workers = []
        for rank in range(len(reports)):
            process = Process("worker", rank, Host("here"), (), {})
            workers.append(Running(process, "here", None, None))  # type: ignore[arg-type]
        for time_, share in ((0.0, 0), (10.0, 1)):
            for worker, report in zip(workers, reports):
                grown = {name: share * value for name, value in report.items()}
                worker.account.status = {"at": time_, **grown}
            found = status.look(workers)
        for rank in ended:
            workers[rank].ended.set_result(ended_with(0))
        now = time.monotonic() + silence
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: now)
            return found if not ended and not silence else status.look(workers)

    return asyncio.run(look())


def test_workers_that_wait_and_have_ended_no_step_lately_count_as_waiting() -> None:
    found = follow({"made": 0, "waiting": 9.0}, {"made": 2, "waiting": 1.0})
    assert found["steps_rate"] == 0
    assert found["waiting"] == pytest.approx(0.5)


def test_steps_that_take_longer_than_the_reports_reach_back_have_a_speed() -> None:
    """Twenty seconds each, of which a quarter is waited for, after a first one that took forty."""
    reports = [{"made": at // 20, "waiting": at // 20 * 5.0} for at in range(20, 100)]
    found = follow_worker(*[{"made": 0, "waiting": 0.0}] * 20, *reports)
    for moment in found[-30:]:
        assert moment["steps_rate"] == pytest.approx(1 / 20)
        assert moment["waiting"] == pytest.approx(1 / 4, rel=0.5)


def test_a_job_that_stands_still_has_no_speed_for_long() -> None:
    moving = [{"made": 100 * at, "waiting": 0.0} for at in range(10)]
    still = [{"made": 900, "waiting": float(at)} for at in range(100)]
    rates = [moment["steps_rate"] for moment in follow_worker(*moving, *still)]
    assert rates[9] == pytest.approx(100)
    assert rates[12] < 1
    assert 0 < rates[-1] < 0.02
    assert follow_worker(*moving, *still)[-1]["waiting"] > 0.9


def test_a_quick_job_is_as_quick_as_in_its_last_seconds() -> None:
    made = [*range(0, 1000, 100), *range(1000, 1100, 10)]
    assert follow_worker(*[{"made": each} for each in made])[-1]["steps_rate"] == pytest.approx(10)


def test_before_two_reports_there_are_no_figures() -> None:
    first, second = follow_worker({"steps": 7, "made": 7}, {"steps": 8, "made": 8})
    assert line(first) == "step 7, no figures yet"
    assert "no figures yet" not in line(second)


def test_steps_of_an_earlier_job_are_none_of_this_ones_speed() -> None:
    found = follow({"steps": 5040, "made": 40})
    assert found["steps_rate"] == 4
    assert found["processes"][0]["steps"] == 5040


def test_a_worker_that_has_ended_does_not_slow_the_others_down() -> None:
    found = follow({"made": 10}, {"made": 20}, ended=(0,))
    assert found["steps_rate"] == 2
    assert found["measured"]


def test_who_says_nothing_any_more_has_no_speed() -> None:
    assert follow({"made": 10, "sent": 70}, silence=1)["sent_rate"] == 7
    found = follow({"made": 10, "sent": 70}, silence=6)
    assert (found["steps_rate"], found["sent_rate"]) == (0, 0)
