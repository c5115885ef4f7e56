"""The launcher's ranks are those that MXNet's scheduler gives."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext.launcher.output import Sink, rename
from kvstore_ext.launcher.ranks import Endpoint, local_rank, ranked
from kvstore_ext.launcher.terminal import Terminal

ADDRESSES = ("10.0.0.9", "10.0.0.10", "10.0.0.100", "9.1.1.1")
ENDPOINTS = st.lists(
    st.builds(Endpoint, st.sampled_from(ADDRESSES), st.integers(1, 65535)), min_size=1, unique=True
)


def as_pslite_sorts(left: Endpoint, right: Endpoint) -> int:
    if left.address != right.address:
        return -1 if left.address > right.address else 1
    return left.port - right.port


@given(ENDPOINTS)
def test_ranks_follow_addresses_and_ports(endpoints: list[Endpoint]) -> None:
    found = ranked(endpoints)
    in_order = sorted(endpoints, key=functools.cmp_to_key(as_pslite_sorts))
    assert sorted(rank for rank, _ in found) == list(range(len(endpoints)))
    for planned, (rank, endpoint) in zip(endpoints, found):
        assert endpoint == in_order[rank]
        assert endpoint.address == planned.address


@given(ENDPOINTS)
def test_processes_of_a_host_keep_their_order(endpoints: list[Endpoint]) -> None:
    found = ranked(endpoints)
    for address in ADDRESSES:
        here = [(rank, endpoint) for rank, endpoint in found if endpoint.address == address]
        assert here == sorted(here, key=lambda each: each[0])
        places = [local_rank(endpoint, endpoints) for _, endpoint in here]
        assert places == list(range(len(here)))


def test_outputs_that_change_names_with_each_other(tmp_path: Path) -> None:
    sinks = [Sink(f"worker {number}", str(tmp_path), Terminal()) for number in range(4)]
    for number, sink in enumerate(sinks):
        sink.complain(f"from {number}, ".encode())
    rename(dict(zip(sinks, ["worker 2", "worker 0", "worker 1", "worker 3"])))
    for number, sink in enumerate(sinks):
        sink.complain(f"still from {number}".encode())
        sink.close(time.monotonic() + 60)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {
        f"worker-{rank}.log": f"from {number}, still from {number}"
        for number, rank in enumerate((2, 0, 1, 3))
    }
    assert [Path(sink.path).name for sink in sinks] == [
        f"worker-{rank}.log" for rank in (2, 0, 1, 3)
    ]
