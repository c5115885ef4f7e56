"""Clusters of network namespaces: their links, and that nothing is left of them."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster import Cluster, ClusterError, Host, Link, claims, namespaces
from tests.support.paths import python_path
from tests.support.processes import LIMIT
from tests.support.system_packages import need, needs_root

pytestmark = needs_root

BYTES = 4 << 20
RECEIVE = """
import socket, sys
with socket.create_server((sys.argv[1], 9000)) as server:
    print("listens", flush=True)
    connection, _ = server.accept()
    while connection.recv(1 << 16):
        pass
"""
SEND = f"""
import socket, sys
with socket.create_connection((sys.argv[1], 9000)) as connection:
    connection.sendall(bytes({BYTES}))
"""
HOLD = """
import signal, sys
from benchmarks.cluster import Cluster
with Cluster(hosts=2) as cluster:
    process = cluster.start(cluster.hosts[1], ["sleep", "1000"])
    print(process.pid, *[host.namespace for host in [*cluster.hosts, cluster.switch]], flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def _iproute2() -> None:
    need("tc")


def start_sending(cluster: Cluster) -> subprocess.Popen[bytes]:
    """From the first host to the second; returns the receiver, which ends with the last byte."""
    sender, receiver = cluster.hosts
    listener = cluster.start(receiver, [sys.executable, "-c", RECEIVE, receiver.address],
                             stdout=subprocess.PIPE)
    assert listener.stdout is not None
    assert listener.stdout.readline() == b"listens\n"
    cluster.start(sender, [sys.executable, "-c", SEND, receiver.address])
    return listener


def await_sent(cluster: Cluster, least: int) -> None:
    latest = time.monotonic() + LIMIT
    while cluster.counters(cluster.hosts[0])[0] < least:
        assert time.monotonic() < latest
        time.sleep(0.05)


def queues(host: Host) -> list[dict[str, Any]]:
    shown = subprocess.run(["tc", "-n", host.namespace, "-s", "-json", "qdisc"],
                           capture_output=True, check=True)
    return [queue for queue in json.loads(shown.stdout) if queue["kind"] != "noqueue"]


def test_two_clusters_stand_side_by_side_and_each_has_its_links() -> None:
    with Cluster(2, Link(1000, 1000)) as fast, Cluster(2, [Link(send=0.5), Link()]) as slow:
        assert [host.address for host in fast.hosts] == [host.address for host in slow.hosts]
        start_sending(slow)
        await_sent(slow, 2 * 128 * 1024)  # more than its bucket holds
        assert start_sending(fast).wait(LIMIT) == 0
        assert BYTES < fast.counters(fast.hosts[0])[0] < 1.1 * BYTES
        assert BYTES < fast.counters(fast.hosts[1])[1] < 1.1 * BYTES
        assert slow.counters(slow.hosts[0])[0] < BYTES  # for which it needs 67 s
        bucket, = queues(slow.hosts[0])
        assert bucket["kind"] == "tbf"
        assert bucket["options"]["rate"] == 0.5e6 / 8  # bytes
        assert bucket["overlimits"] > 0
        assert queues(slow.hosts[1]) == []
        made = {host.namespace for host in [*fast.hosts, *slow.hosts, fast.switch, slow.switch]}
        assert len(made) == 6
        assert made <= set(namespaces.names())
    assert not made & set(namespaces.names())


def test_a_link_receives_as_slowly_as_it_says() -> None:
    with Cluster(2, [Link(), Link(receive=0.5)]) as cluster:
        start_sending(cluster)
        assert [queues(host) for host in cluster.hosts] == [[], []]
        latest = time.monotonic() + LIMIT
        while not (bucket := queues(cluster.switch)[0])["overlimits"]:
            assert time.monotonic() < latest
            time.sleep(0.05)
        assert bucket["kind"] == "tbf"
        assert bucket["options"]["rate"] == 0.5e6 / 8  # bytes
        assert len(queues(cluster.switch)) == 1
        assert cluster.counters(cluster.hosts[1])[1] < BYTES  # for which it needs 67 s


def test_no_host_has_to_ask_for_another() -> None:
    with Cluster(hosts=3) as cluster:
        for host in (*cluster.hosts, cluster.switch):
            command = [*host.within, "ip", "-json", "neigh", "show", "nud", "permanent"]
            known = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            others = {each.address for each in (*cluster.hosts, cluster.switch)} - {host.address}
            assert {each["dst"] for each in known} == others


@pytest.mark.parametrize(
    ("link", "resends"),
    [
        (Link(), "200ms"),
        (Link(1000, 1000), "200ms"),
        (Link(receive=100), "1.342s"),
        (Link(50, 100), "2.684s"),
    ],
)
def test_tcp_is_that_of_a_network(link: Link, resends: str) -> None:
    with Cluster(2, [Link(), link]) as cluster:
        for host in (*cluster.hosts, cluster.switch):
            for network in (["10.77.0.0/24"], [host.address, "table", "local"]):
                show = [*host.within, "ip", "route", "show", *network]
                routes = subprocess.run(show, capture_output=True, check=True, text=True).stdout
                assert routes.count("\n") == 1
                assert " congctl cubic" in routes
                assert f" rto_min lock {resends} " in routes
            settings = [
                f"/proc/sys/net/ipv4/tcp_{name}"
                for name in ("reordering", "recovery", "slow_start_after_idle", "min_rtt_wlen")
            ]
            read = [*host.within, "cat", *settings]
            assert subprocess.run(read, capture_output=True, check=True).stdout.split() == [
                b"300", b"0", b"0", b"86400"]


def test_a_host_is_cut_off_and_brought_back() -> None:
    with Cluster(2, Link(send=20)) as cluster:
        receiver = start_sending(cluster)
        await_sent(cluster, BYTES // 8)
        cluster.cut_off(cluster.hosts[0])
        _, arrived = cluster.counters(cluster.hosts[1])
        time.sleep(0.5)
        assert cluster.counters(cluster.hosts[1])[1] < arrived + 10_000  # what the switch says
        assert receiver.poll() is None
        cluster.bring_back(cluster.hosts[0])
        assert receiver.wait(LIMIT) == 0
        assert {queue["kind"] for queue in queues(cluster.hosts[0])} == {"tbf"}


def test_the_next_cluster_removes_what_a_killed_process_left() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": python_path()})
    assert holder.stdout is not None
    number, *left = holder.stdout.readline().split()
    try:
        with Cluster(1):  # leaves those alone that are in use
            assert set(left) <= set(namespaces.names())
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait(LIMIT)
    with Cluster(1):
        # Another process that makes one at this moment may be removing them in its place.
        latest = time.monotonic() + LIMIT
        while running(int(number)) or set(left) & set(namespaces.names()):
            assert time.monotonic() < latest
            time.sleep(0.05)


def running(process: int) -> bool:
    """Whether a process is there, and not only its status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_exception_leaves_nothing() -> None:
    made: list[str] = []

    def fail() -> None:
        with Cluster(1) as cluster:
            made.append(cluster.hosts[0].namespace)
            cluster.start(cluster.hosts[0], ["sleep", "1000"])
            raise KeyError("in the middle")

    with pytest.raises(KeyError):
        fail()
    assert made[0] not in namespaces.names()


def test_a_number_is_given_back_where_namespaces_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_claim: claims.Claim) -> None:
        raise ClusterError("it is busy")

    cluster = Cluster(1).__enter__()
    claim = cluster._claim
    assert claim is not None
    with monkeypatch.context() as patched:
        patched.setattr(claims.Claim, "remove_all", fail)
        with pytest.raises(ClusterError, match="it is busy"):
            cluster.__exit__(None, None, None)
    assert claim._lock.closed
    with Cluster(1):  # removes what was left
        pass


def test_a_delay_is_emulated_or_refused() -> None:
    try:
        with Cluster(1, Link(send=100, delay=5)) as cluster:
            kinds = [queue["kind"] for queue in queues(cluster.hosts[0])]
            assert kinds == ["tbf", "netem"]
    except ClusterError as error:
        assert "no netem" in str(error)  # noqa: PT017 - depends on the kernel


def test_what_cannot_be_made_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match="hosts is 0; it must be 1 to 250"):
        Cluster(0)
    with pytest.raises(ClusterError, match="there are 1 links; 2 hosts need as many"):
        Cluster(2, [Link()])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="network namespaces, which need root"), Cluster(1):
        pass
