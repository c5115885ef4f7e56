"""How far the shares that TCP's connections get of slow links lie apart, by measuring.

    python -m benchmarks.prediction.bursts

Hosts, namespaces with links as the replay's, send each other a burst at a time, as MXNet's stores
do with large keys: with four of them three connections leave each host, and three reach it. It
prints what has come when all would have if no link were idle, how far the connections' shares lie
apart halfway, and the send buffers that Linux has given them; and what the simulation says of the
same bursts with the constant that it has (UNLIKE of kvstore_ext/predict/stores.py). It needs root.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from math import log, sqrt
from pathlib import Path
from statistics import mean, median, variance
from typing import Any, Dict, List

from kvstore_ext.predict.events import Events
from kvstore_ext.predict.network import FRAMES
from kvstore_ext.predict.shares import Share
from kvstore_ext.predict.stores import UNLIKE
from kvstore_ext.predict.streams import Stream
from kvstore_ext.predict.wires import Connection, Sender, Wire

from benchmarks.cluster import Cluster, Link
from benchmarks.prediction.burst_host import LOOKS
from benchmarks.replay.endings import in_one_line

_DRAWS = 24
_LONGER = 3  # times what they should take is what bursts may take
Shares = List[float]  # of each connection, by who sends and then by who receives


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction.bursts")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--megabits", type=float, default=100, help="of a link each way")
    parser.add_argument("--bytes", type=int, default=10_000_000, help="to each of the others")
    parser.add_argument("--bursts", type=int, default=12)
    given = parser.parse_args()
    least = (given.hosts - 1) * given.bytes * FRAMES * 8e-6 / given.megabits
    with in_one_line():
        hosts = _measured(given, least)
    buffers = [size for host in hosts for size in host["buffers"]]
    print(f"{given.hosts} hosts, {given.megabits:g} Mbit/s, {given.bursts} bursts; send buffers: "
          f"{median(buffers):.0f} bytes ({min(buffers)} to {max(buffers)})")  # fmt: skip
    simulated = [
        simulate(given.bytes, given.megabits, UNLIKE, draw, given.hosts)
        for draw in range(_DRAWS)
    ]
    for number, look in enumerate(LOOKS):
        measured = [_shares(hosts, burst, number) for burst in range(given.bursts)]
        words = [
            _in_words(bursts)
            for bursts in (measured, [burst[number] for burst in simulated])
        ]
        print(f"after {look:.0%} of the least time: measured {words[0]}; simulated {words[1]}")


def _shares(hosts: List[Dict[str, Any]], burst: int, look: int) -> Shares:
    return [
        other["came"][burst][look][str(near)]
        for near in range(len(hosts)) for far, other in enumerate(hosts) if far != near
    ]  # fmt: skip


def simulate(
    size: int, megabits: float, unlike: float, draw: int, hosts: int = 4
) -> List[Shares]:
    """What the simulation says of a burst.

    Parameters
    ----------
    size : int
        Bytes to each of the others.
    megabits : float
        Of each link, each way.
    unlike : float
        Deviation of the logarithms of connections' shares.
    draw : int
        Which of such shares they get.
    hosts : int

    Returns
    -------
    list of list of float
        Of each look the share of its bytes that each connection has brought.
    """
    events, rate = Events(), megabits * 1e6 / 8
    least = (hosts - 1) * size * FRAMES / rate
    places = [(Sender(events, Wire(rate)), Wire(rate)) for _ in range(hosts)]
    streams = [
        Stream(
            Connection(sender, wire, back, answers, 25e-6),
            Share(unlike, draw, near, far),
        )
        for near, (sender, answers) in enumerate(places)
        for far, (back, wire) in enumerate(places) if near != far
    ]  # fmt: skip
    found: List[Shares] = []
    for stream in streams:
        stream.send(size, 0, lambda _: None, None)
    for look in LOOKS:
        events.at(look * least, lambda: found.append([1 - each.held / size for each in streams]))
    events.run()
    return found


def _in_words(bursts: List[Shares]) -> str:
    came = mean(mean(each) for each in bursts)
    apart = mean(variance(log(max(share, 0.01)) for share in each) for each in bursts)
    return f"{came:.3f} came, deviation of logarithms {sqrt(apart):.2f}"


def _measured(given: argparse.Namespace, least: float) -> List[Dict[str, Any]]:
    """What each host tells."""
    arguments = [str(given.hosts), str(given.bytes), str(given.bursts), str(least)]
    file = str(Path(__file__).with_name("burst_host.py"))
    with Cluster(given.hosts, Link(send=given.megabits, receive=given.megabits)) as cluster:
        hosts = [
            cluster.start(host, [sys.executable, file, str(number), *arguments],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for number, host in enumerate(cluster.hosts)
        ]  # fmt: skip
        for host in hosts:
            if host.stdout.readline() != "ready\n":
                sys.exit("error: a host ended before it was connected")
        begin = time.time() + 3
        limit = 3 + _LONGER * given.bursts * (2 * least + 1)
        for host in hosts:
            host.stdin.write(f"{begin}\n")
            host.stdin.flush()
        latest = time.monotonic() + limit
        try:
            return [
                json.loads(host.communicate(timeout=max(0.0, latest - time.monotonic()))[0])
                for host in hosts
            ]
        except subprocess.TimeoutExpired:
            sys.exit(f"error: bursts that should take {limit / _LONGER:.0f} s have not ended "
                     f"after {limit:.0f} s")


if __name__ == "__main__":
    main()
