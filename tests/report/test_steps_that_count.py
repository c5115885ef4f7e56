"""A report counts the steps that all processes have recorded, and all that is in them."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kvstore_ext.report.analysis import NoStepError, analyse
from kvstore_ext.report.overlap import late_gradients
from kvstore_ext.report.process_sections import basis_section
from kvstore_ext.trace.reading import JobTrace

from tests.report import jobs
from tests.report.made_jobs import lagging


def full(job: JobTrace, name: str, room: int) -> JobTrace:
    """As if this process had had room for so many events, which are written as they end."""
    processes = []
    for process in job.processes:
        if process.name == name:
            first = np.sort(np.argsort(process.events["end"], kind="stable")[:room])
            left_out = len(process.events) - room
            process = replace(process, events=process.events[first], dropped=left_out)
        processes.append(process)
    return replace(job, processes=tuple(processes))


def test_steps_that_end_when_a_server_has_no_room_for_events_do_not_count() -> None:
    job = jobs.FULL_LINK.trace()
    expected = analyse(job)
    # All of six rounds of eight.
    found = analyse(full(job, "server 0", len(job.servers[0].events) * 6 // 8))
    assert [one.steps.numbers.tolist() for one in found.iterations] == [[3, 4, 5]] * 2
    for sends in (True, False):
        one, other = found.links.of("server 0", sends), expected.links.of("server 0", sends)
        assert one is not None
        assert other is not None
        assert one.carried == pytest.approx(other.carried, rel=0.05)
    assert found.servers[0].updating == pytest.approx(expected.servers[0].updating, rel=0.05)
    (cost,), (whole,) = found.methods, expected.methods
    assert cost.result_bytes == pytest.approx(whole.result_bytes)
    said = "4 steps were left out that ended when server 0 had no room for events any more"
    assert said in basis_section(found).about
    assert "no room" not in basis_section(expected).about


def test_a_worker_without_room_for_events_limits_the_others_steps_too() -> None:
    whole = jobs.FULL_LINK.trace()
    job = full(whole, "worker 1", len(whole.workers[1].events) * 6 // 8)
    found = analyse(job)
    assert found.full == "worker 1"
    last = job.workers[1].events["end"].max()
    assert all(one.steps.ends.max() < last for one in found.iterations)


def test_a_job_whose_events_had_no_room_from_the_first_step_on_says_so() -> None:
    with pytest.raises(NoStepError, match=r"server 0 .* trace fewer steps, or set trace_events"):
        analyse(full(jobs.FULL_LINK.trace(), "server 0", 1))


def test_what_a_key_costs_counts_by_steps_whatever_its_rounds_are() -> None:
    job = jobs.COSTLY.trace()
    (cost,), (expected,) = analyse(lagging(job, 100, 2)).methods, analyse(job).methods
    assert cost.plain_bytes == pytest.approx(expected.plain_bytes)
    assert cost.pushed_bytes == pytest.approx(expected.pushed_bytes)
    assert cost.result_bytes == pytest.approx(expected.result_bytes)
    assert cost.encoding == pytest.approx(expected.encoding)
    assert cost.decoding == pytest.approx(expected.decoding)
    assert cost.serving == pytest.approx(expected.serving)


def test_who_pushes_late_pushes_a_key_late_whatever_its_rounds_are() -> None:
    assert late_gradients(lagging(jobs.LATE_PUSHES.trace(), 100, 3).workers[0]) == 1
    assert late_gradients(lagging(jobs.FULL_LINK.trace(), 100, 3).workers[0]) == 0
