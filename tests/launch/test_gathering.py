"""Which host of the hostfile counts as gone, by what tasks of mpirun and srun tell of theirs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from kvstore_ext.launcher.failure import explained
from kvstore_ext.launcher.gathering import GatheringStarter
from kvstore_ext.launcher.hosts import Host, host_called
from kvstore_ext.launcher.output import Sink
from kvstore_ext.launcher.processes import Ending, Process
from kvstore_ext.launcher.protocol import GREETING, Link, encode
from kvstore_ext.launcher.running import StartError
from kvstore_ext.launcher.terminal import Terminal


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("one", "one"),
        ("one.cluster", "one"),
        ("two", "me@two.cluster"),
        ("three.b", "three.b"),
        ("three", None),
        ("four", None),
    ],
)
def test_which_host_calls_itself_so(name: str, found: str | None) -> None:
    hosts = [Host(each) for each in ("one", "me@two.cluster", "three.a", "three.b")]
    assert host_called(name, hosts) == (found and Host(found))


@pytest.mark.parametrize(("told", "gone"), [("two.cluster", "two"), ("10-0-0-7", "one")])
def test_the_host_that_is_lost_is_the_one_that_was_told(
    tmp_path: Path, told: str, gone: str
) -> None:
    """srun goes through the hosts in an order of its own; of other names the plan is all there
    is."""
    hosts = [Host("one"), Host("two")]

    async def lose_a_task() -> Host | None:
        sinks = [Sink(name, str(tmp_path), Terminal()) for name in ("srun", "worker 0")]
        starter = GatheringStarter("srun", lambda addresses: [], None, 60, sinks[0], hosts)
        reader = asyncio.StreamReader()
        reader.feed_data(GREETING + encode({"host": told}))
        starter._links[0].set_result(Link(reader, None))  # type: ignore[arg-type]
        worker = Process("worker", 0, hosts[0], ("true",), {})
        running = await starter.start(0, worker, sinks[1], 60)
        running._set_ended(Ending(1, "is lost", lost=True))
        failure = await explained(running, [running], own_servers=True)
        for sink in sinks:
            sink.close(time.monotonic() + 60)
        return failure.host

    assert asyncio.run(lose_a_task()) == Host(gone)


@pytest.mark.parametrize("others", [True, False])
def test_only_the_first_task_may_wait_in_a_queue(tmp_path: Path, others: bool) -> None:
    async def start() -> None:
        sinks = [Sink(name, str(tmp_path), Terminal()) for name in ("srun", "worker 1")]
        queue, limit = (60, 0.1) if others else (0.1, 60)
        starter = GatheringStarter("srun", lambda addresses: [], None, queue, sinks[0], [])
        if others:
            link = Link(asyncio.StreamReader(), None)  # type: ignore[arg-type]
            starter._links[0].set_result(link)
        worker = Process("worker", 1, Host("one"), ("true",), {})
        try:
            await starter.start(1, worker, sinks[1], limit)
        finally:
            for sink in sinks:
                sink.close(time.monotonic() + 60)

    if others:
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(start())
    else:
        with pytest.raises(StartError, match=r"worker 1 did not start within 0\.1 s"):
            asyncio.run(start())
