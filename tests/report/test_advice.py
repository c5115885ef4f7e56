"""Each rule fires for the job that it is for, with its figure, and is silent for another."""
from __future__ import annotations

from dataclasses import replace
from typing import Optional

import numpy as np
import pytest
from kvstore_ext.report import key_rules, link_rules, process_rules, words
from kvstore_ext.report.advice import Rule, advise
from kvstore_ext.report.analysis import analyse
from kvstore_ext.report.causes import Cause
from kvstore_ext.report.rules import RULES
from kvstore_ext.trace.events import Kind
from kvstore_ext.trace.reading import JobTrace

from tests.report import jobs
from tests.report.made_jobs import Key, Made, idle_workers


def finding(rule: Rule, job: JobTrace, gigabits: Optional[float] = None) -> str:
    said = rule(analyse(job, gigabits))
    assert said is not None
    assert said.remedy
    return said.finding


def is_silent(rule: Rule, job: JobTrace, gigabits: Optional[float] = None) -> bool:
    return rule(analyse(job, gigabits)) is None


def test_nothing_to_gain() -> None:
    assert "wait for 3 % of a step" in finding(
        process_rules.nothing_to_gain, jobs.COMPUTE_BOUND.trace()
    )
    assert is_silent(process_rules.nothing_to_gain, jobs.FULL_LINK.trace())


def test_straggler() -> None:
    said = finding(process_rules.straggler, jobs.STRAGGLING.trace())
    assert said.startswith("Worker 1 computes 36.0 ms a step, the others 18.0 ms")
    assert is_silent(process_rules.straggler, jobs.FULL_LINK.trace())


def test_a_straggler_is_one_where_all_agree_on_scalers() -> None:
    """All push at the same time then, and the last to come need not be the one that was late."""
    job = replace(jobs.STRAGGLING, slower={0: 2.0}, agreeing=0.1).trace()
    said = finding(process_rules.straggler, job)
    assert said.startswith("Worker 0 computes 36.0 ms a step, the others 18.0 ms")
    assert analyse(job).causes.by_cause()[Cause.PREPARING] < 0.02 * analyse(job).causes.total


def test_on_one_host_no_worker_has_a_slower_one() -> None:
    apart = replace(jobs.STRAGGLING, hosts=["a", "b", "c", "d"]).trace()
    said = process_rules.straggler(analyse(apart))
    assert said is not None
    assert said.remedy.startswith("Look at that worker's host: ")
    for job, rule in (
        (jobs.STRAGGLING.trace(), process_rules.straggler),
        (taking_turns(), process_rules.taking_turns),
    ):
        said = rule(analyse(job))
        assert said is not None
        assert "this host" in said.remedy
        assert "that worker's host" not in said.remedy
        assert "their hosts" not in said.remedy


def test_uneven_servers() -> None:
    said = finding(link_rules.uneven_servers, jobs.UNEVEN.trace())
    assert said.startswith("The link into server 2 has work for 56 % of the time")
    assert "at most 7 %" in said
    assert said.endswith("keys dense2 and dense1 lie there.")
    even = [Key(name, place % 2) for place, name in enumerate("abcd")]
    assert is_silent(link_rules.uneven_servers, Made(even, servers=2, rate=1e5).trace())


def test_one_key_lies_at_the_uneven_server() -> None:
    said = finding(link_rules.uneven_servers, jobs.HEAVY_FIRST.trace())
    assert said.endswith("key embedding lies there.")


def test_a_slow_link() -> None:
    said = analyse(jobs.SLOW_LINK.trace())
    advice = link_rules.uneven_servers(said)
    assert advice is not None
    assert advice.finding.startswith("The link into server 1 has work for 48 %")
    assert "slower" in advice.remedy
    advice = link_rules.uneven_servers(analyse(jobs.UNEVEN.trace()))
    assert advice is not None
    assert "slower" not in advice.remedy


def test_full_links() -> None:
    said = finding(link_rules.full_links, jobs.FULL_LINK.trace())
    assert said.startswith("Workers wait for 92 % of a step, 96 % of it for links")
    assert "server 0 receives" in said
    assert is_silent(link_rules.full_links, jobs.STRAGGLING.trace())
    assert is_silent(link_rules.full_links, jobs.FULL_LINK.trace(), 10.0)


def test_half_used_links() -> None:
    said = finding(link_rules.half_used_links, jobs.FULL_LINK.trace(), 10.0)
    assert "of the 10.0 Gbit/s that you gave" in said
    assert is_silent(link_rules.half_used_links, jobs.FULL_LINK.trace())


def test_slow_servers() -> None:
    said = finding(process_rules.slow_servers, jobs.SLOW_SERVERS.trace())
    assert said.endswith("half of the slices take server 0 20.1 ms or longer.")
    assert is_silent(process_rules.slow_servers, jobs.FULL_LINK.trace())


def test_workers_that_take_turns_in_being_last() -> None:
    said = finding(process_rules.taking_turns, taking_turns())
    assert said.endswith("no worker is always the slow one.")
    assert is_silent(process_rules.taking_turns, jobs.STRAGGLING.trace())


def taking_turns() -> JobTrace:
    """Two traces, one after the other: in each another worker is slow."""
    # The first two steps of all do not count.
    first = Made(jobs.SMALL, servers=2, slower={0: 2.5}, steps=11).trace()
    second = Made(jobs.SMALL, servers=2, slower={1: 2.5}, steps=9).trace()
    later = max(int(process.events["end"].max()) for process in first.processes)
    parts = []
    for one, other in zip(first.processes, second.processes):
        moved = other.events.copy()
        for name in ("begin", "end"):
            moved[name] += later
        moved["round"][moved["round"] > 0] += 20
        parts.append(replace(one, events=np.concatenate((one.events, moved))))
    return JobTrace(tuple(parts), first.keys)


def test_one_key() -> None:
    said = finding(key_rules.one_key, jobs.HEAVY_FIRST.trace())
    assert said == "100 % of all waiting is for key embedding, which has 93 % of the bytes."
    assert is_silent(key_rules.one_key, jobs.SLOW_LINK.trace())


def test_late_pushes() -> None:
    said = finding(key_rules.late_pushes, jobs.LATE_PUSHES.trace())
    assert said.startswith("100 % of the gradients were pushed after the whole backward pass")
    assert is_silent(key_rules.late_pushes, jobs.FULL_LINK.trace())


def test_in_a_short_backward_pass_no_push_is_late() -> None:
    short = replace(jobs.LATE_PUSHES, forward=0.05, backward=0.1)
    assert not is_silent(key_rules.late_pushes, replace(short, backward=0.2).trace())
    assert is_silent(key_rules.late_pushes, short.trace())


def test_wrong_order() -> None:
    turned = jobs.UNEVEN.trace()
    for process in turned.processes:
        process.events["priority"] *= -1
    assert finding(key_rules.wrong_order, turned).startswith("Only 0 % of the pairs of layers")
    assert is_silent(key_rules.wrong_order, jobs.UNEVEN.trace())


def test_costly_compression() -> None:
    said = finding(key_rules.costly_compression, jobs.COSTLY.trace())
    assert said.startswith("terngrad takes 60.1 ms of a worker's processor in a step")
    assert said.endswith("would take 2.91 ms.")
    assert is_silent(key_rules.costly_compression, jobs.WORTHWHILE.trace())
    assert is_silent(key_rules.costly_compression, jobs.FULL_LINK.trace())


def test_what_a_job_has_already_is_no_remedy() -> None:
    def remedy(rule: Rule, job: JobTrace) -> str:
        said = rule(analyse(job))
        assert said is not None
        return said.remedy

    def of_type(job: JobTrace, dtype: str) -> JobTrace:
        return replace(job, keys={
            name: replace(key, dtype=dtype) for name, key in job.keys.items()
        })

    halves = [Key(name, travels=500_000, method="fp16") for name in "abc"]
    assert remedy(key_rules.costly_compression, jobs.COSTLY.trace()).endswith(", or fp16.")
    costly = replace(jobs.COSTLY, keys=halves).trace()
    assert remedy(key_rules.costly_compression, costly).endswith("try the store p3.")

    full = jobs.FULL_LINK.trace()
    assert "fp16 halves the bytes" in remedy(link_rules.full_links, full)
    assert "fp16" not in remedy(link_rules.full_links, of_type(full, "float16"))

    assert "an optimizer" in remedy(process_rules.slow_servers, jobs.SLOW_SERVERS.trace())
    adding = replace(jobs.SLOW_SERVERS, updating=0.0, summing=20.0).trace()
    assert "an optimizer" not in remedy(process_rules.slow_servers, adding)

    assert "a compression" in remedy(process_rules.busy_processors, jobs.COSTLY.trace())
    plain = Made(jobs.SMALL, servers=2, encoding=20.0).trace()
    assert "a compression" not in remedy(process_rules.busy_processors, plain)


def test_busy_processors() -> None:
    assert finding(process_rules.busy_processors, jobs.COSTLY.trace()).startswith("99 %")
    assert is_silent(process_rules.busy_processors, jobs.FULL_LINK.trace())


def test_agreeing_on_scalers() -> None:
    agreed = replace(jobs.WORTHWHILE, agreeing=20.0).trace()
    said = finding(process_rules.agreeing, agreed)
    assert said.endswith("with terngrad agreeing takes 60.5 ms a step, added up over keys.")
    assert is_silent(process_rules.busy_processors, agreed)
    assert is_silent(process_rules.agreeing, jobs.COSTLY.trace())


def test_unseen() -> None:
    job = jobs.FULL_LINK.trace()
    workers_alone = JobTrace(tuple(job.workers), job.keys)
    assert finding(process_rules.unseen, workers_alone).startswith("For 100 %")
    assert is_silent(process_rules.unseen, job)


JOBS = [name for name, job in vars(jobs).items() if isinstance(job, Made)]


@pytest.mark.parametrize("name", JOBS)
def test_every_job_gets_advice_with_a_figure(name: str) -> None:
    said = advise(analyse(getattr(jobs, name).trace()), RULES)
    assert said
    for advice in said:
        assert any(letter.isdigit() for letter in advice.finding)


def test_events_that_are_left_out_break_nothing() -> None:
    job = jobs.UNEVEN.trace()
    half = [replace(one, events=one.events[: len(one.events) // 2]) for one in job.processes]
    found = analyse(JobTrace(tuple(half), job.keys))
    assert found.share_waiting == found.share_waiting
    sparse = [replace(one, events=one.events[one.events["kind"] != Kind.SENT]) for one in half]
    for advice in advise(analyse(JobTrace(tuple(sparse), job.keys)), RULES):
        assert "nan" not in advice.finding
        assert words.NOTHING not in advice.finding.split()


def test_without_a_known_link_nothing_is_said_of_what_compression_saves() -> None:
    job = jobs.COSTLY.trace()
    workers_alone = JobTrace(tuple(job.workers), job.keys)
    assert is_silent(key_rules.costly_compression, workers_alone)
    assert not is_silent(key_rules.costly_compression, workers_alone, 8.0)


def test_a_worker_without_a_whole_step_is_compared_with_nobody() -> None:
    job = jobs.STRAGGLING.trace()
    late = job.workers[2]
    cut = replace(late, events=late.events[late.events["kind"] != Kind.STEP])
    others = [process for process in job.processes if process.name != late.name]
    found = analyse(JobTrace((*others[:2], cut, *others[2:]), job.keys))
    said = process_rules.straggler(found)
    assert said is not None
    assert said.finding.startswith("Worker 1 computes 36.0 ms a step, the others 18.0 ms")
    assert found.overlap == found.overlap


def test_a_worker_that_is_always_a_little_late_takes_no_turns() -> None:
    little = replace(jobs.STRAGGLING, slower={1: 1.08}, rate=1e9, writing=0.0).trace()
    found = analyse(little)
    assert found.workers[1].last == 1
    assert process_rules.taking_turns(found) is None
    beside = JobTrace((*little.workers, *idle_workers(little, 3), *little.servers), little.keys)
    assert process_rules.taking_turns(analyse(beside)) is None


def test_a_server_that_has_more_bytes_is_not_called_slow() -> None:
    # As much longer as it has more: it carries what the others carry then.
    keys = [Key("b", 1, 1_600_000), Key("a", 0, 1_000_000)]
    said = link_rules.uneven_servers(analyse(Made(keys, servers=2, rate=1e5).trace()))
    assert said is not None
    assert said.finding.endswith("key b lies there.")


def test_a_frozen_key_is_no_reason_for_an_uneven_server() -> None:
    job = jobs.UNEVEN.trace()
    info = next(iter(job.keys.values()))
    part = replace(info.slices[0], server=2, elements=10**8)
    frozen = replace(info, identity=999, name="frozen", elements=10**8, slices=(part,))
    keys = {**job.keys, 999: frozen}
    said = finding(link_rules.uneven_servers, JobTrace(job.processes, keys))
    assert said.endswith("keys dense2 and dense1 lie there.")


@pytest.mark.parametrize(("hosts", "more"), [("abc", True), ("aba", False)])
def test_only_hosts_of_servers_alone_call_for_more_servers(hosts: str, more: bool) -> None:
    job = replace(jobs.FULL_LINK, hosts=[f"server0{name}" for name in hosts])
    found = analyse(job.trace())
    fullest = link_rules._fullest(found)
    assert fullest is not None
    assert ("more servers" in link_rules._send_less(found, fullest)) == more
