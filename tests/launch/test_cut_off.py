"""`--launcher ssh` on hosts of their own, of which the network loses one: the others end with the
job, and what runs on that one ends by itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator

import pytest

from benchmarks.cluster import Cluster
from tests.support.system_packages import need, needs_root

from .jobs import STAY, Job
from .patched import launcher_with
from .sshd import Sshd
from .test_ssh import IMPATIENT

pytestmark = needs_root

TRAIN = """
import os

import kvstore_ext
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.ones((3,))
store.init("weight", value)
step = 0
while True:
    step += 1
    store.pushpull("weight", value, out=value)
    value.wait_to_read()
    if step == 5:
        print("trains on", os.environ["DMLC_NODE_HOST"], flush=True)
        if os.environ.get("KVSTORE_EXT_ATTEMPT") == "1":
            break
"""


@pytest.fixture
def network() -> Iterator[Cluster]:
    """The launcher's host and three others, of which the last one is to spare."""
    need("tc")
    with Cluster(hosts=4) as network:
        yield network


@pytest.fixture
def options(job: Job, network: Cluster) -> Iterator[list[str]]:
    """With which a launcher, on its host from now on, starts two workers on two others."""
    launchers, *others = network.hosts
    sshd = Sshd(job.directory, job.mark, ["0.0.0.0"])
    job.entry = [*launchers.within, *launcher_with(IMPATIENT)]
    addresses = [host.address for host in others[:2]]
    with sshd.serve_on(others):
        yield ["-n", "2", "-H", sshd.hostfile(addresses), f"--launcher-options=-F {sshd.config}"]


def test_the_launcher_misses_a_supervisor_and_the_supervisor_the_launcher(
    job: Job, network: Cluster, options: list[str]
) -> None:
    options[-1] += " -o ServerAliveInterval=1"
    worker = "echo up; sleep 1000"
    job.start("-s", "1", "--no-secure", "--server-command", STAY, *options, "sh", "-c", worker)
    for rank in (0, 1):
        job.wait_for_line(f"[worker {rank}] up")
    network.cut_off(network.hosts[2])
    assert job.wait() == 1
    lost = "is lost: the connection to its supervisor has ended"
    address = re.escape(network.hosts[2].address)
    assert re.fullmatch(rf"launch: worker \d on {address} {lost}", job.errors[1])
    job.assert_gone()


@pytest.mark.all_only
def test_stores_say_who_is_missed(job: Job, network: Cluster, options: list[str]) -> None:
    limits = {"KVSTORE_EXT_OPTIONS": '{"timeout": 6, "silence": 6}'}
    job.start(*options, "-s", "2", sys.executable, "-c", TRAIN, environment=limits)
    for rank in (0, 1):
        job.wait_for_match(rf"\[worker {rank}\] trains")
    network.cut_off(network.hosts[2])
    assert job.wait() == 1
    address = re.escape(network.hosts[2].address)
    said = "\n".join(job.errors)
    assert re.search(rf"launch: \w+ \d on {address} .*", said)
    assert re.search(r"worker \d has not pushed key|no (answer|sign of life) from server \d", said)
    job.assert_gone()


@pytest.mark.all_only
def test_a_host_that_is_lost_is_replaced(
    job: Job, network: Cluster, options: list[str]
) -> None:
    """By the next one of the hostfile."""
    _, first, lost, spare = (host.address for host in network.hosts)
    hostfile = Path(options[options.index("-H") + 1])
    lines = hostfile.read_text().splitlines()
    hostfile.write_text("\n".join([*lines, lines[0].replace(first, spare)]))
    options[-1] += " -o ServerAliveInterval=1"
    options += ["--hosts-needed", "2", "--restarts", "1", "-s", "1"]
    job.start(*options, sys.executable, "-c", TRAIN)
    for host in (first, lost):  # MXNet's ranks are not the launcher's
        job.wait_for_match(rf"\[worker \d\] trains on {re.escape(host)}$")
    network.cut_off(network.hosts[2])
    assert job.wait() == 0, job.errors
    trained = [line.split()[-1] for line in job.lines if " trains on " in line]
    assert sorted(trained) == sorted([first, lost, first, spare])
    assert re.search(rf"launch: \w+ \d on {re.escape(lost)} is lost: ", "\n".join(job.errors))
    job.assert_gone()
