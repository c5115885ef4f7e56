"""How far the shares that TCP's connections get of slow links lie apart, by measuring.

    python -m benchmarks.prediction.bursts

Four hosts, namespaces with links as the replay's, send each other a burst at a time, as MXNet's
stores do with large keys: three connections leave each host, and three reach it. It prints what has
come when all would have if no link were idle, how far the connections' shares lie apart halfway,
and the send buffers that Linux has given them; and what the simulation says of the same bursts with
the constant that it has (UNLIKE of kvstore_ext/predict/stores.py). It needs root.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from math import log
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, Dict, List

from kvstore_ext.predict.events import Events
from kvstore_ext.predict.network import FRAMES
from kvstore_ext.predict.shares import Share
from kvstore_ext.predict.stores import UNLIKE
from kvstore_ext.predict.streams import Stream
from kvstore_ext.predict.wires import Connection, Sender, Wire

from benchmarks.cluster import Cluster, Link
from benchmarks.prediction.burst_host import HOSTS, LOOKS

_DRAWS = 24


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction.bursts")
    parser.add_argument("--megabits", type=float, default=100, help="of a link each way")
    parser.add_argument("--bytes", type=int, default=10_000_000, help="to each of the others")
    parser.add_argument("--bursts", type=int, default=12)
    given = parser.parse_args()
    least = (HOSTS - 1) * given.bytes * FRAMES * 8e-6 / given.megabits
    hosts = _measured(given, least)
    buffers = [size for host in hosts for size in host["buffers"]]
    print(f"{given.megabits:g} Mbit/s, {given.bursts} bursts; send buffers: "
          f"{median(buffers):.0f} bytes ({min(buffers)} to {max(buffers)})")  # fmt: skip
    simulated = [simulate(given.bytes, given.megabits, UNLIKE, draw) for draw in range(_DRAWS)]
    for number, look in enumerate(LOOKS):
        measured = [
            [share for host in hosts for share in host["came"][burst][number]]
            for burst in range(given.bursts)
        ]
        print(f"after {look:.0%} of the least time: measured {_in_words(measured)}; simulated "
              f"{_in_words([burst[number] for burst in simulated])}")  # fmt: skip


def simulate(size: int, megabits: float, unlike: float, draw: int) -> List[List[float]]:
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

    Returns
    -------
    list of list of float
        Of each look the share of its bytes that each connection has brought.
    """
    events, rate = Events(), megabits * 1e6 / 8
    least = (HOSTS - 1) * size * FRAMES / rate
    hosts = [(Sender(events, Wire(rate)), Wire(rate)) for _ in range(HOSTS)]
    streams = [
        Stream(Connection(sender, wire, back, answers, 25e-6), Share(unlike, draw, near, far))
        for near, (sender, answers) in enumerate(hosts)
        for far, (back, wire) in enumerate(hosts) if near != far
    ]  # fmt: skip
    found: List[List[float]] = []
    for stream in streams:
        stream.send(size, 0, lambda _: None, None)
    for look in LOOKS:
        events.at(look * least, lambda: found.append([1 - each.held / size for each in streams]))
    events.run()
    return found


def _in_words(bursts: List[List[float]]) -> str:
    came = mean(mean(each) for each in bursts)
    apart = mean(stdev(log(max(share, 0.01)) for share in each) for each in bursts)
    return f"{came:.3f} came, deviation of logarithms {apart:.2f}"


def _measured(given: argparse.Namespace, least: float) -> List[Dict[str, Any]]:
    """What each host tells."""
    arguments = [str(given.bytes), str(given.bursts), str(least)]
    file = str(Path(__file__).with_name("burst_host.py"))
    with Cluster(HOSTS, Link(send=given.megabits, receive=given.megabits)) as cluster:
        hosts = [
            cluster.start(host, [sys.executable, file, str(number), *arguments],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for number, host in enumerate(cluster.hosts)
        ]  # fmt: skip
        for host in hosts:
            if host.stdout.readline() != "ready\n":
                sys.exit("error: a host ended before it was connected")
        begin = time.time() + 3
        for host in hosts:
            host.stdin.write(f"{begin}\n")
            host.stdin.flush()
        return [json.loads(host.communicate()[0]) for host in hosts]


if __name__ == "__main__":
    main()
