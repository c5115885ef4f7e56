"""Which processes a report takes to be on one host."""
from __future__ import annotations

from dataclasses import replace
from typing import Sequence

import pytest
from kvstore_ext.report.advice import on_one_host
from kvstore_ext.report.analysis import Analysis, analyse
from kvstore_ext.report.page import page
from kvstore_ext.trace.clocks import Clock

from tests.report import jobs


def with_clocks(hosts: Sequence[str], clocks: Sequence[str]) -> Analysis:
    """A job of two workers and three servers, on hosts and with clocks of these names."""
    job = replace(jobs.UNEVEN, hosts=hosts).trace()
    named = zip(job.processes, clocks)
    return analyse(
        replace(job, processes=tuple(replace(one, clock=Clock(name)) for one, name in named))
    )


def test_two_hosts_of_one_name_are_two() -> None:
    first, second = "kernel-a time:[1]", "kernel-b time:[1]"
    found = with_clocks(["ubuntu"] * 5, [first, second, first, second, second])
    assert [process.host for process in found.job.processes] == [
        "ubuntu (1)", "ubuntu (2)", "ubuntu (1)", "ubuntu (2)", "ubuntu (2)"]  # fmt: skip
    assert {end.name for end in found.links.hosts} == {"ubuntu (1)", "ubuntu (2)"}
    assert not on_one_host(found)
    text = page(found)
    assert "2 workers and 3 servers on 2 hosts" in text
    assert "All processes were on one host" not in text


@pytest.mark.parametrize(
    ("hosts", "clocks"),
    [
        (["a", "b", "a", "b", "b"], ["one", "two", "one", "two", "two"]),
        # Containers of one host, and a process that does not say which kernel it has.
        (["a"] * 5, ["one time:[1]", "one time:[2]", "one", "one time:[1]", ""]),
    ],
    ids=["names that differ", "one kernel"],
)
def test_hosts_that_are_told_apart_already_keep_their_names(
    hosts: Sequence[str], clocks: Sequence[str]
) -> None:
    assert [process.host for process in with_clocks(hosts, clocks).job.processes] == hosts
