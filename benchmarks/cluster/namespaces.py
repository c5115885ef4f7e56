"""Network namespaces, their links and what runs in them, by iproute2's commands."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import List, Sequence, Tuple

INTERFACE = "eth0"  # of every host
PREFIX = "kvstore-ext"  # of the names of all namespaces

# Linux's own way to find out how fast TCP may send. A machine may have another: with bbr MXNet's
# own stores are up to 8 % slower, which send more at a time than ours.
CONGESTION_CONTROL = "cubic"

# A token bucket lets this many bytes through at once. More than a segment that the kernel has not
# cut into packets yet, 64 KiB, and too little to matter beside a slice.
_BURST_BYTES = 128 * 1024
SWITCH_QUEUE = 4 << 20  # bytes that a port of the switch holds before it drops
# A host drops nothing of its own: TCP has a few segments of each connection wait, and no more.
HOST_QUEUE = 64 << 20

# Packets that one processor of this machine takes in overtake those of another, as in no network,
# and TCP would take hundreds a run for lost, and slow down: CUBIC by a lot, BBR hardly. Kernels of
# 6.17 and later do not heed the second. And where all is slowed down, so are pauses: TCP would
# forget in each how fast it may send, and after five minutes how near another host is, of which it
# hears only while wires are free. It sends small segments to whom it believes to be far, and those
# get a fraction of a busy link.
_PATIENCE = {
    "tcp_reordering": 300, "tcp_recovery": 0, "tcp_slow_start_after_idle": 0,
    "tcp_min_rtt_wlen": 86400,  # seconds, the most that it takes
}

# What has not been acknowledged after so many seconds counts as lost, with all behind it. At usual
# rates nothing waits for so long; on slow links it does, where ports and hosts have much to send.
_RESENDS = 0.2
_WAITING = 2 * SWITCH_QUEUE  # at a port, and as much at a host with thirty connections


class ClusterError(Exception):
    """A cluster cannot be made here."""


@dataclass(frozen=True)
class Link:
    """What joins a host to the switch.

    Parameters
    ----------
    send, receive : float
        Mbit/s from the host and to the host, with Ethernet's headers; 0 is unlimited.
    delay : float
        Milliseconds that a packet takes from the host to the switch. Needs a kernel with netem.
    """

    send: float = 0
    receive: float = 0
    delay: float = 0


def own_counters() -> List[int]:
    """What this process's host has received and sent so far, in the order of /proc/net/dev: bytes
    and packets to it stand in places 0 and 1, and those from it in 8 and 9.

    Raises FileNotFoundError where it is no host of a cluster.
    """
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == INTERFACE:
            return [int(number) for number in numbers.split()]
    raise FileNotFoundError(f"this host has no interface {INTERFACE}")


def check_possible() -> None:
    """Raises ClusterError, in one line, where namespaces cannot be made."""
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        raise ClusterError(f"a cluster needs {' and '.join(missing)}, of the package iproute2")
    if os.geteuid() != 0:
        raise ClusterError("a cluster is made of network namespaces, which need root: use sudo")


def make(name: str, others: Sequence[str] = ()) -> None:
    """Makes a namespace, with its loopback interface up, and further things by `ip` commands."""
    _run("ip", "netns", "add", name)
    settings = " && ".join(
        f"echo {value} > /proc/sys/net/ipv4/{setting}" for setting, value in _PATIENCE.items())
    _run("ip", "netns", "exec", name, "sh", "-c", settings)
    configure(name, ["link set lo up", *others])


def configure(name: str, commands: Sequence[str]) -> None:
    """Runs commands of `ip` in a namespace."""
    _run("ip", "-n", name, "-batch", "-", text="\n".join(commands) + "\n")


def routes(interface: str, address: str, slowest: float) -> List[str]:
    """The commands of `ip` by which TCP's connections to the network of an address, up to its 24th
    bit, and to the address itself are controlled alike on all machines: a namespace may not choose
    that for all of its own. They fit links of so many Mbit/s and more; 0 is unlimited.
    """
    waiting = 2 * 8e-6 * _WAITING / slowest if slowest else 0.0
    resends = round(1000 * max(_RESENDS, waiting))
    network = address.rpartition(".")[0] + ".0/24"
    controlled = (f"dev {interface} proto kernel src {address} congctl {CONGESTION_CONTROL} "
                  f"rto_min {resends}ms")
    return [
        f"route replace {network} {controlled} scope link",
        f"route replace local {address} {controlled} scope host table local",
    ]


def shape(name: str, interface: str, megabits: float, queue: int, delay: float = 0) -> None:
    """Limits what leaves through an interface without limits yet, of which a queue of so many bytes
    may wait, and delays it by milliseconds."""
    parent = "root"
    if megabits:
        bucket = f"tbf rate {round(megabits * 1e6)} burst {_BURST_BYTES} limit {queue}"
        _run("tc", "-n", name, *f"qdisc add dev {interface} root handle 1: {bucket}".split())
        parent = "parent 1:1"
    if delay:
        packets = 100_000  # all that is on the way; those beyond are dropped
        netem = f"qdisc add dev {interface} {parent} netem delay {delay}ms limit {packets}"
        try:
            _run("tc", "-n", name, *netem.split())
        except ClusterError as error:
            if "unknown" not in str(error):
                raise
            raise ClusterError(
                "this kernel has no netem (its module sch_netem), so that links cannot have a "
                f"delay: it must be 0, not {delay:g} ms"
            ) from None


def counters(name: str, interface: str = INTERFACE) -> Tuple[int, int]:
    """Bytes that a namespace has sent and received through an interface, with Ethernet's headers.
    """
    shown = _run("ip", "-n", name, "-json", "-statistics", "link", "show", "dev", interface)
    statistics = json.loads(shown)[0]["stats64"]
    return statistics["tx"]["bytes"], statistics["rx"]["bytes"]


def names() -> List[str]:
    """Those of all namespaces of clusters, whoever made them."""
    listed = _run("ip", "netns", "list").splitlines()
    return [line.split()[0] for line in listed if line.startswith(f"{PREFIX}-")]


def processes(name: str) -> List[int]:
    """The numbers of those that run in a namespace."""
    return [int(line) for line in _run("ip", "netns", "pids", name).split()]


def remove(name: str) -> None:
    """Ends what runs in a namespace and removes it, with its links."""
    latest = time.monotonic() + 10
    while running := processes(name):
        for process in running:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > latest:
            raise ClusterError(f"in {name} processes do not end: {running}")
        time.sleep(0.02)
    _run("ip", "netns", "del", name)


def _run(*command: str, text: str = "") -> str:
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        reason = (ended.stderr.strip().splitlines() or ["it says nothing"])[0]
        commands = " ".join([*command, text.replace("\n", "; ")]).strip()
        raise ClusterError(f"`{commands}` fails: {reason}")
    return ended.stdout
