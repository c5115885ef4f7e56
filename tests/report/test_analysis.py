"""What is found in jobs whose times follow from a few numbers."""
from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from kvstore_ext.report.analysis import Analysis, NoStepError, analyse
from kvstore_ext.report.causes import Cause
from kvstore_ext.report.order import order_of
from kvstore_ext.report.overlap import late_gradients
from kvstore_ext.report.pictures import parts_of_step
from kvstore_ext.report.process_sections import basis_section
from kvstore_ext.trace.clocks import Clock
from kvstore_ext.trace.events import Kind, Message
from kvstore_ext.trace.merging import merged
from kvstore_ext.trace.reading import JobTrace

from tests.report import jobs
from tests.report.made_jobs import MS, Key, Made, idle_workers, lagging


@lru_cache(maxsize=None)
def found_in(name: str) -> Analysis:
    return analyse(getattr(jobs, name).trace())


def test_a_step_is_computing_and_waiting_to_the_microsecond() -> None:
    one = found_in("COMPUTE_BOUND").iterations[0]
    assert one.forward == pytest.approx(np.full(len(one.forward), 0.006))
    assert one.backward == pytest.approx(np.full(len(one.forward), 0.012))
    assert one.forward + one.backward + one.waiting == pytest.approx(one.steps.seconds)


def test_steps_that_warm_up_are_left_out_and_so_is_what_takes_much_longer() -> None:
    job = jobs.COMPUTE_BOUND.trace()
    for worker in job.workers:
        last = worker.events["kind"] == Kind.STEP
        last &= worker.events["round"] == worker.events["round"][last].max()
        worker.events["end"][last] += 1000 * MS  # as if the worker had evaluated
    steps = analyse(job).iterations[0].steps
    assert (steps.warming, steps.interrupted, steps.numbers.tolist()) == (2, 1, [3, 4, 5, 6])


def test_a_job_that_is_too_short_says_so() -> None:
    with pytest.raises(NoStepError, match="no whole step"):
        analyse(Made(jobs.SMALL, servers=2, steps=1).trace())


def test_each_moment_of_a_wait_has_one_cause() -> None:
    for name in ("COMPUTE_BOUND", "FULL_LINK", "STRAGGLING", "UNEVEN"):
        causes = found_in(name).causes
        lengths = (causes.waits["end"] - causes.waits["begin"]) / 1e9
        assert causes.seconds.sum(axis=1) == pytest.approx(lengths)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("STRAGGLING", Cause.GRADIENT),
        ("COSTLY", Cause.ENCODING),
        ("SLOW_SERVERS", Cause.SERVER),
        ("SLOW_LINK", Cause.RESULT),
        ("COSTLY_TO_PULL", Cause.WRITING),
    ],
)
def test_what_holds_a_job_up_is_the_cause_of_most_of_its_waits(name: str, cause: Cause) -> None:
    by_cause = found_in(name).causes.by_cause()
    assert by_cause.argmax() == cause
    assert by_cause[cause] > 0.6 * by_cause.sum()


def test_a_wait_for_the_servers_alone_is_as_long_as_they_take() -> None:
    # For the first layer's key, the last of the backward pass: 20 ms of updating, 0.1 of summing.
    found = found_in("SLOW_SERVERS")
    assert found.causes.by_cause()[Cause.SERVER] / found.count == pytest.approx(0.0201, rel=0.01)


def test_without_a_server_s_trace_the_cause_is_not_known() -> None:
    job = jobs.FULL_LINK.trace()
    causes = analyse(JobTrace(tuple(job.workers), job.keys)).causes
    assert causes.total > 0
    assert causes.by_cause()[Cause.UNSEEN] == pytest.approx(causes.total)


def test_the_waits_are_for_the_link_of_the_server_that_has_most() -> None:
    by_link = found_in("UNEVEN").causes.by_link()
    at_server_2 = sum(seconds for link, seconds in by_link.items() if link[1] == 2)
    assert at_server_2 > 0.8 * sum(by_link.values())


def test_of_what_is_pulled_later_the_slice_that_came_last_counts() -> None:
    """A push alone writes nothing: a later pull writes all slices at once."""
    job = replace(jobs.UNEVEN, in_two_calls=True).trace()
    for worker in job.workers:
        worker.events["peer"][worker.events["kind"] == Kind.WRITTEN] = 0
    assert analyse(job).causes.by_link() == found_in("UNEVEN").causes.by_link()


def test_a_result_is_there_once_it_was_first_written() -> None:
    job = jobs.COSTLY_TO_PULL.trace()
    found = analyse(job)
    in_one_call = analyse(replace(jobs.COSTLY_TO_PULL, in_two_calls=False).trace())
    assert found.causes.by_cause() == pytest.approx(in_one_call.causes.by_cause())
    assert found.overlap == pytest.approx(in_one_call.overlap)
    # Whoever pulls a result again, to look at it, waits no longer.
    again = [replace(each, events=_pulled_twice(each.events)) for each in job.processes]
    twice = analyse(JobTrace(tuple(again), job.keys))
    assert twice.causes.by_cause() == pytest.approx(found.causes.by_cause())


def _pulled_twice(events: np.ndarray) -> np.ndarray:
    pulled = (events["kind"] == Kind.DONE) & (events["message"] == Message.PULL)
    later = events[pulled | (events["kind"] == Kind.WRITTEN)]
    later["begin"] += 10 * MS
    later["end"] += 10 * MS
    both = np.concatenate((events, later))
    return both[np.argsort(both["begin"], kind="stable")]


def test_who_left_no_trace_is_named() -> None:
    job = jobs.UNEVEN.trace()
    kept = [each for each in job.processes if each.name not in ("worker 1", "server 2")]
    about = basis_section(analyse(JobTrace(tuple(kept), job.keys))).about
    assert "worker 1 and server 2 took part, and left no files here" in about
    assert "took part" not in basis_section(found_in("UNEVEN")).about


def test_nothing_is_saved_on_the_way_from_a_server_without_a_trace() -> None:
    job = jobs.UNEVEN.trace()
    kept = [each for each in job.processes if each.name != "server 2"]
    (cost,) = analyse(JobTrace(tuple(kept), job.keys)).methods
    assert np.isnan(cost.result_bytes)
    assert cost.spared_bytes == pytest.approx(cost.plain_bytes - cost.pushed_bytes)
    (whole,) = found_in("UNEVEN").methods
    assert whole.result_bytes > 0


def test_who_has_an_unknown_clock_left_files_all_the_same() -> None:
    job = jobs.UNEVEN.trace()
    lost = [
        replace(each, clock=Clock(error=float("inf"))) if each.name == "server 2" else each
        for each in job.processes
    ]
    about = basis_section(analyse(JobTrace(tuple(lost), job.keys))).about
    assert "Nothing counts server 2, whose clocks" in about
    assert "took part" not in about


def test_without_a_worker_s_trace_the_others_keep_their_ranks() -> None:
    job = jobs.FULL_LINK.trace()
    found = analyse(JobTrace(job.processes[1:], job.keys))
    assert {worker for worker, _, _ in found.causes.by_link()} == {1}
    assert sum(seconds for _, what, seconds in parts_of_step(found, 0) if "waiting" in what) > 0


def test_a_link_carries_what_was_sent_in_the_time_that_it_took() -> None:
    found = found_in("FULL_LINK")
    # Two workers send 4 MB each a step, and get as many.
    expected = 8e-9 * 8_000_000 / found.step
    for sends in (True, False):
        end = found.links.of("server 0", sends)
        assert end is not None
        assert end.carried == pytest.approx(expected, rel=0.05)
        assert end.under_way == pytest.approx(0.8, rel=0.01)
        assert end.rates.max() == pytest.approx(0.8, rel=0.01)
    assert found.links.gigabits == pytest.approx(0.8, rel=0.01)


def test_samples_add_up_to_the_bytes_that_came() -> None:
    found = found_in("UNEVEN")
    received = found.links.of("server 2", False)
    sent = [found.links.of(f"worker {rank}", True) for rank in (0, 1)]
    others = [found.links.of(f"server {rank}", False) for rank in (0, 1)]
    assert received is not None
    total = received.rates.sum() + sum(end.rates.sum() for end in others if end)
    assert sum(end.rates.sum() for end in sent if end) == pytest.approx(total)
    assert received.carried == pytest.approx(8 * others[0].carried, rel=0.05)  # type: ignore[union-attr]


def test_what_a_user_says_of_the_link_counts() -> None:
    links = analyse(jobs.FULL_LINK.trace(), 4.0).links
    assert (links.gigabits, links.given) == (4.0, True)


def test_what_processes_of_one_host_send_each_other_is_not_on_its_link() -> None:
    job = replace(jobs.UNEVEN, hosts=["a", "b", "a", "b", "c"])
    hosts = {(end.name, end.sends): end for end in analyse(job.trace()).links.hosts}
    assert {name for name, _ in hosts} == {"a", "b", "c"}
    # Worker 0 beside server 0 sends 1 + 8 of its 10 MB to others, and server 0 sends 1 MB to b.
    ratio = hosts["a", True].carried / hosts["c", False].carried
    assert ratio == pytest.approx(10 / 16, rel=0.1)


def test_the_straggler_computes_longer_and_comes_last() -> None:
    paces = found_in("STRAGGLING").workers
    assert [round(1000 * pace.computing, 2) for pace in paces] == [18, 36, 18]
    assert [pace.last for pace in paces] == [0, 1, 0]
    assert paces[1].held_up > 0.01
    assert paces[0].held_up == 0


def test_a_server_takes_as_long_as_its_sum_and_update() -> None:
    assert found_in("SLOW_SERVERS").servers[0].answer == pytest.approx(0.0201, rel=0.01)


def test_only_a_script_that_waits_pushes_late() -> None:
    assert late_gradients(jobs.LATE_PUSHES.trace().workers[0]) == 1
    assert late_gradients(jobs.FULL_LINK.trace().workers[0]) == 0
    assert np.isnan(late_gradients(replace(jobs.FULL_LINK, layers=False).trace().workers[0]))


def test_overlap_is_less_where_gradients_travel_only_after_the_backward_pass() -> None:
    early = analyse(replace(jobs.LATE_PUSHES, waits_for_all=False).trace())
    assert found_in("LATE_PUSHES").overlap < early.overlap < 1


def test_keys_are_found_at_their_layers_by_name_and_by_time() -> None:
    named = Made([Key("conv1_weight"), Key("conv2_weight")]).trace()
    for layers in (("conv1_fwd", "conv2_fwd"), ("first", "second")):
        workers = tuple(replace(worker, layers=layers) for worker in named.workers)
        found = analyse(JobTrace((*workers, *named.servers), named.keys))
        assert found.layers == {100: layers[0], 101: layers[1]}


def test_modules_keys_are_found_at_the_operators_of_its_symbol() -> None:
    made = Made([Key("'conv1_weight'"), Key("'conv10_weight'")]).trace()
    workers = [replace(worker, layers=("conv10", "conv1")) for worker in made.workers]
    found = analyse(JobTrace((*workers, *made.servers), made.keys))
    assert found.layers == {100: "conv1", 101: "conv10"}


def test_the_order_is_that_of_the_priorities_beside_that_of_the_forward_pass() -> None:
    order = found_in("UNEVEN").order
    assert [place.name for place in order.places] == ["conv1", "conv2", "dense1", "dense2"]
    assert [place.needed for place in order.places] == [1, 2, 3, 4]
    assert order.agreeing == 1
    turned = jobs.UNEVEN.trace()
    for process in turned.processes:
        process.events["priority"] *= -1
    assert analyse(turned).order.agreeing == 0


def test_what_compression_costs_and_saves() -> None:
    (cost,) = found_in("COSTLY").methods
    assert (cost.name, cost.keys, cost.is_plain) == ("terngrad", 3, False)
    assert (cost.plain_bytes, cost.pushed_bytes, cost.result_bytes) == (3e6, 93_750, 93_750)
    assert cost.encoding == pytest.approx(0.060)
    assert cost.decoding == pytest.approx(0.00015)
    assert cost.saved_seconds(8.0) == pytest.approx(0.00290625)


def test_what_one_worker_gives_to_all_others_is_no_gradient() -> None:
    model = jobs.Key("model", method="broadcast")
    (cost,) = analyse(replace(jobs.COSTLY, keys=[*jobs.ENCODED, model]).trace()).methods
    assert (cost.name, cost.keys) == ("terngrad", 3)


@pytest.mark.parametrize(
    ("hosts", "times"),
    [
        (("a", "b", "c"), 2),  # all pushes reach the server's host
        (("a", "b", "a"), 1),  # one worker's pushes, and its results, leave b and come back
        (("a", "a", "b"), 2),
    ],
)
def test_what_it_saves_is_of_the_busiest_link(hosts: tuple[str, ...], times: int) -> None:
    (cost,) = analyse(replace(jobs.COSTLY, hosts=hosts).trace()).methods
    assert cost.spared_bytes == pytest.approx(times * (3e6 - 93_750))


def test_agreeing_on_scalers_is_no_processor_s_time() -> None:
    job = jobs.COSTLY.trace()
    for worker in job.workers:
        prepared = worker.events["kind"] == Kind.PREPARED
        worker.events["end"][prepared] += 7 * MS
        worker.events["thread"][prepared] = 99  # that which got the answer
    (cost,) = analyse(job).methods
    assert cost.encoding == pytest.approx(0.060)
    assert cost.agreeing == pytest.approx(0.021)


def test_without_layers_the_wait_is_between_two_bounds_that_hold() -> None:
    known = found_in("FULL_LINK")
    unknown = analyse(replace(jobs.FULL_LINK, layers=False).trace())
    assert not unknown.layers_known
    assert unknown.share_waiting <= known.share_waiting + 1e-9
    assert known.share_waiting <= unknown.share_at_most + 0.01


@pytest.mark.parametrize("left", [0, 1], ids=["all names", "the last name"])
def test_a_worker_without_names_of_layers_waits_as_one_without_layers(left: int) -> None:
    job = jobs.FULL_LINK.trace()
    first, second = job.workers
    killed = replace(second, layers=second.layers[:left])
    found = analyse(JobTrace((first, killed, *job.servers), job.keys))
    unknown = analyse(replace(jobs.FULL_LINK, layers=False).trace()).iterations[1]
    known, unnamed = found.iterations
    assert (known.layers_known, unnamed.layers_known) == (True, False)
    assert 0 < unnamed.share_waiting == unknown.share_waiting
    assert list(merged(JobTrace((killed,), job.keys)))


def test_events_of_other_messages_change_nothing() -> None:
    job = jobs.FULL_LINK.trace()
    worker = job.workers[0]
    question = worker.of_kind(Kind.SENT)[:5].copy()
    question["message"], question["bytes"] = Message.ASK, 10**9
    noisy = replace(worker, events=np.concatenate((worker.events, question)))
    found = analyse(JobTrace((noisy, *job.processes[1:]), job.keys))
    assert found.links.gigabits == pytest.approx(found_in("FULL_LINK").links.gigabits)
    assert found.share_waiting == found_in("FULL_LINK").share_waiting


def test_a_key_that_is_not_pushed_in_every_step_is_waited_for_in_its_own_rounds() -> None:
    job = jobs.FULL_LINK.trace()
    expected = analyse(job)
    behind = lagging(job, 100, 3)  # the first layer's
    found = analyse(behind)
    for one, other in zip(found.iterations, expected.iterations):
        later = one.steps.numbers > 4
        assert later.sum() > 2
        assert one.waiting[later] == pytest.approx(other.waiting[later])
    without = [replace(process, layers=()) for process in behind.processes]
    unnamed = analyse(JobTrace(tuple(without), job.keys)).iterations[0]
    known = analyse(replace(jobs.FULL_LINK, layers=False).trace()).iterations[0]
    assert unnamed.waiting[later] == pytest.approx(known.waiting[later])


def test_a_late_worker_whose_trace_is_missing_is_no_slow_server() -> None:
    job = jobs.STRAGGLING.trace()
    rest = [process for process in job.processes if process.name != "worker 1"]
    by_cause = analyse(JobTrace(tuple(rest), job.keys)).causes.by_cause()
    assert by_cause[Cause.UNSEEN] > 0.9 * by_cause.sum()


def test_a_worker_that_is_idle_leaves_the_others_causes_known() -> None:
    job = replace(jobs.SLOW_SERVERS, workers=1).trace()
    found = analyse(JobTrace((*job.workers, *idle_workers(job, 1), *job.servers), job.keys))
    by_cause = found.causes.by_cause()
    assert by_cause.argmax() == Cause.SERVER
    assert by_cause[Cause.UNSEEN] == 0
    assert found.overlap == found.overlap


def test_copying_ones_own_gradient_is_no_wait_for_another_workers() -> None:
    job = replace(jobs.FULL_LINK, workers=1).trace()
    before = analyse(job).causes.by_cause()
    events = job.workers[0].events
    first = events["key"] == 0
    events["end"][first & (events["kind"] == Kind.BACKWARD)] -= MS
    events["begin"][first & (events["kind"] == Kind.FORWARD)] -= MS
    found = analyse(JobTrace(job.processes, job.keys))
    causes = found.causes.by_cause()
    assert causes[Cause.GRADIENT] == 0
    assert causes[Cause.ENCODING] - before[Cause.ENCODING] == pytest.approx(0.001 * found.count)


def test_idle_workers_whose_ranks_are_nobodys_peers_leave_causes_known() -> None:
    job = jobs.SLOW_SERVERS.trace()
    found = analyse(JobTrace((*job.workers, *idle_workers(job, 2, 3), *job.servers), job.keys))
    assert found.causes.by_cause() == pytest.approx(found_in("SLOW_SERVERS").causes.by_cause())


def test_the_order_is_that_of_whoever_has_gradients() -> None:
    job = jobs.SLOW_SERVERS.trace()
    order = order_of(JobTrace((*idle_workers(job, 0), job.workers[1], *job.servers), job.keys))
    assert order == found_in("SLOW_SERVERS").order
    nobody = order_of(JobTrace((*idle_workers(job, 0), *job.servers), job.keys))
    assert nobody.places == []


def test_who_comes_last_is_told_of_those_who_have_steps() -> None:
    job = jobs.STRAGGLING.trace()
    found = analyse(JobTrace((*job.workers, *idle_workers(job, 3), *job.servers), job.keys))
    lasts = [worker.last for worker in found.workers]
    assert lasts[:3] == [worker.last for worker in found_in("STRAGGLING").workers]
    assert np.isnan(lasts[3])
    alone = analyse(JobTrace((job.workers[0], *idle_workers(job, 3), *job.servers), job.keys))
    assert np.isnan([worker.last for worker in alone.workers]).all()


def test_keys_of_4_gib_and_more_have_all_their_bytes() -> None:
    job = jobs.FULL_LINK.trace()
    heavy = max(job.keys.values(), key=lambda key: key.elements)
    keys = {**job.keys, heavy.identity: replace(heavy, elements=3 << 29)}
    for worker in job.workers:
        ready = (worker.events["key"] == heavy.identity) & (worker.events["kind"] == Kind.READY)
        worker.events["bytes"][ready] = (3 << 31) % (1 << 32)
    found = analyse(JobTrace(job.processes, keys))
    (place,) = (each for each in found.order.places if each.key == heavy.identity)
    assert place.bytes == 3 << 31
    assert sum(each.plain_bytes for each in found.methods) > 3 << 31


def test_a_clock_that_no_ping_connects_is_named_where_no_step_is_left() -> None:
    job = jobs.FULL_LINK.trace()
    lost = [replace(each, clock=Clock(error=float("inf"))) for each in job.workers]
    with pytest.raises(NoStepError, match="without worker 0 and worker 1, whose clocks no ping"):
        analyse(JobTrace((*lost, *job.servers), job.keys))


def test_what_a_server_has_not_recorded_of_a_worker_leaves_the_cause_unknown() -> None:
    job = jobs.FULL_LINK.trace()
    server = job.servers[0]
    heard = (server.events["kind"] == Kind.RECEIVED) & (server.events["peer"] == 1)
    deaf = replace(server, events=server.events[~heard])
    causes = analyse(JobTrace((*job.workers, deaf), job.keys)).causes
    assert causes.by_cause()[Cause.UNSEEN] == pytest.approx(causes.total)


def test_who_has_another_clock_is_not_compared() -> None:
    job = jobs.FULL_LINK.trace()
    first, second = job.workers
    events = second.events.copy()
    for name in ("begin", "end"):
        events[name] += 30 * 24 * 3600 * 1000 * MS  # whose host has run for a month longer
    far = replace(second, events=events, clock=replace(second.clock, error=float("inf")))
    found = analyse(JobTrace((first, far, *job.servers), job.keys))
    assert found.apart == ["worker 1"]
    assert [process.name for process in found.job.processes] == ["worker 0", "server 0"]
    assert len(found.links.counts) < 1000
    assert "Nothing counts worker 1, whose clocks" in basis_section(found).about


def test_shares_are_of_the_steps_that_count() -> None:
    found, expected = paused(jobs.SLOW_SERVERS), found_in("SLOW_SERVERS")
    assert found.iterations[0].steps.interrupted == 1
    assert found.servers[0].updating == pytest.approx(expected.servers[0].updating, rel=0.1)
    links, others = paused(jobs.FULL_LINK).links, found_in("FULL_LINK").links
    for one, other in zip(links.processes, others.processes):
        assert links.full(one) == pytest.approx(others.full(other), abs=0.1)


def test_who_evaluates_alone_is_no_straggler() -> None:
    """Nor is one that has begun later: of steps that do not count no gradient does."""
    job = jobs.STRAGGLING.trace()
    middle = job.workers[0].of_kind(Kind.STEP)["begin"][4]
    evaluating = []
    for process in job.processes:
        events = process.events.copy()
        later = events["end"] > middle
        if process.name in ("worker 1", "worker 2"):  # which were ready before
            ready = later & (events["kind"] == Kind.READY)
            later &= ~(ready & (events["round"] == events["round"][ready].min()))
        for name in ("begin", "end"):
            events[name][later & (events[name] > middle)] += 60_000 * MS
        evaluating.append(replace(process, events=events))
    paces = found_in("STRAGGLING").workers
    found = analyse(JobTrace(tuple(evaluating), job.keys)).workers
    assert [pace.last for pace in found] == [pace.last for pace in paces]
    for pace, expected in zip(found, paces):
        assert pace.late == pytest.approx(expected.late, rel=0.2, nan_ok=True)


def paused(made: Made) -> Analysis:
    """A job that has evaluated for a minute after half of its steps."""
    job = made.trace()
    middle = job.workers[0].of_kind(Kind.STEP)["begin"][4]
    processes = []
    for process in job.processes:
        events = process.events.copy()
        for name in ("begin", "end"):
            events[name][events[name] > middle] += 60_000 * MS
        processes.append(replace(process, events=events))
    return analyse(JobTrace(tuple(processes), job.keys))


def test_results_are_those_of_the_workers_whose_traces_are_there() -> None:
    whole = jobs.COSTLY.trace()
    lost = replace(whole, processes=tuple(one for one in whole.processes if one.name != "worker 1"))
    (expected,), (found,) = (analyse(job).methods for job in (whole, lost))
    assert found.result_bytes == pytest.approx(expected.result_bytes)
    assert found.pushed_bytes == pytest.approx(expected.pushed_bytes)


def test_keys_of_one_priority_travel_as_their_gradients_become_ready() -> None:
    level = jobs.UNEVEN.trace()
    for process in level.processes:
        process.events["priority"] = 0
    order = analyse(level).order
    assert [place.name for place in order.places] == ["dense2", "dense1", "conv2", "conv1"]
    assert order.agreeing == 0
