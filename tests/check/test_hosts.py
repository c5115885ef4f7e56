"""The check of several hosts, by the launcher's ways to start processes there."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from pathlib import Path

from kvstore_ext.check.finding import OK, WRONG

from benchmarks.cluster import Cluster, Link
from tests.launch import slurmd
from tests.launch.jobs import Job
from tests.launch.sshd import HOSTS, Sshd
from tests.support.system_packages import need, needs_root

from .checks import Check


def test_two_hosts_and_one_that_refuses(job: Job, sshd: Sshd) -> None:
    hosts = [*HOSTS, "127.0.0.3"]
    check = Check(
        *["-H", sshd.hostfile(hosts), "--interface", "lo"],
        f"--launcher-options=-F {sshd.config}",
        environment={"KVSTORE_EXT_TEST_MARK": job.mark},
    )
    assert check.status == 1
    for name in HOSTS:
        found = check.host(name)
        assert not [each for each in found.values() if each["state"] == WRONG], found
        # As the launcher would have it, and with its variables.
        assert found["address"]["found"].startswith("127.0.0.1 (lo, by DMLC_NODE_HOST)")
    [refused] = check.host(hosts[2]).values()
    assert "Connection refused" in refused["found"]
    assert refused["remedy"].startswith("start sshd there")
    together = {each["name"]: each["state"] for each in check.report["together"]}
    assert together == {"versions": OK, "clocks": OK}
    links = check.links()
    assert list(links) == [HOSTS, HOSTS[::-1]]
    assert all(link["round_trip"] > 0 and link["bandwidth"] > 0 for link in links.values())
    assert "check: measuring 2 links, one after another: about 3 s" in check.errors
    job.assert_gone()


@needs_root
def test_slow_link_and_firewall(bare: str, tmp_path: Path) -> None:
    """Host 2 sends slowly; what host 1 would answer to host 0, a firewall drops."""
    need("tc")
    fast, slow = Link(send=80, receive=80), Link(send=8, receive=80)
    job = Job(tmp_path)
    sshd = Sshd(tmp_path, job.mark, ["0.0.0.0"])
    with Cluster(3, [fast, fast, slow]) as cluster, sshd.serve_on(cluster.hosts):
        addresses = [host.address for host in cluster.hosts]
        for rule in (
            f"pref 10 ipproto tcp sport {sshd.port} lookup main",
            f"pref 11 ipproto tcp sport 20000-32767 to {addresses[0]} blackhole",
        ):
            command = ["ip", "-n", cluster.hosts[1].namespace, "rule", "add", *rule.split()]
            subprocess.run(command, check=True)
        check = Check(
            *["-H", sshd.hostfile(addresses), f"--launcher-options=-F {sshd.config}"],
            python=bare,
            within=cluster.hosts[0].within,
            environment={"KVSTORE_EXT_TEST_MARK": job.mark},
        )
        job.assert_gone()
    for address in addresses:
        assert "probe" not in check.host(address), check.host(address)
    links = check.links()
    dropped = links.pop((addresses[0], addresses[1]))
    assert dropped["error"].startswith(f"no answer from {addresses[1]}:")
    assert f"ports 20000 to 32767 through from {addresses[0]} to" in dropped["remedy"]
    assert len(links) == 5
    for (origin, _), link in links.items():
        assert link["error"] == "", link
        rate = 8e-6 * link["bandwidth"]
        assert rate < 1.1 * (8 if origin == addresses[2] else 80), link
        assert rate > (0.5 * 8 if origin == addresses[2] else 2 * 8), link


def test_probe_that_is_lost(bare: str, job: Job, sshd: Sshd) -> None:
    """One interpreter runs the launcher's supervisor, and no probe on the second host."""
    python = job.directory / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$* $SSH_CONNECTION" in *--probe*" {HOSTS[1]} "*)\n'
        f'    echo why >&2; exit 3\nesac\nexec {bare} "$@"\n'
    )
    python.chmod(0o755)
    check = Check(
        *["-H", sshd.hostfile(), "--interface", "lo", "--python", str(python)],
        f"--launcher-options=-F {sshd.config}",
        python=bare,
    )
    assert check.status == 1
    assert "probe" not in check.host(HOSTS[0])
    [lost] = check.host(HOSTS[1]).values()
    assert lost["found"] == "ended with exit status 3: why"
    assert (check.report["together"], check.report["links"]) == ([], [])
    job.assert_gone()


def test_tasks_of_mpirun(bare: str, job: Job) -> None:
    need("mpirun")
    # Open MPI refuses root, as which tests in containers run, without these.
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    arguments = ["--launcher", "mpi", "-n", "2", "--interface", "lo"]
    environment = {**root, "KVSTORE_EXT_TEST_MARK": job.mark}
    check = Check(*arguments, python=bare, environment=environment)
    assert_measured(check)
    job.assert_gone()


def test_a_probe_of_mpirun_is_named_by_where_it_runs(bare: str, job: Job) -> None:
    """Not by its place in the file, since srun for one goes through its hosts sorted."""
    need("mpirun")
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    (job.directory / "hosts").write_text("localhost\n")
    arguments = ["--launcher", "mpi", "-H", str(job.directory / "hosts"), "--interface", "lo"]
    environment = {**root, "KVSTORE_EXT_TEST_MARK": job.mark}
    check = Check(*arguments, python=bare, environment=environment)
    assert [host["name"] for host in check.report["hosts"]] == [f"{socket.gethostname()} (0)"]
    job.assert_gone()


def test_mpirun_that_fails(bare: str) -> None:
    need("mpirun")
    arguments = ["--launcher", "mpi", "-n", "2", "--launcher-options=--no-such-option"]
    check = Check(*arguments, python=bare)
    assert check.status == 1
    [failed] = check.host("host 1").values()
    assert failed["found"].startswith("mpirun on localhost ended with exit status ")


def test_tasks_of_slurm(bare: str, job: Job, tmp_path: Path) -> None:
    arguments = ["--launcher", "slurm", "-n", "2", "--interface", "lo", "--start-timeout", "60"]
    with contextlib.contextmanager(slurmd.serve)(tmp_path) as slurm:
        environment = {**slurm, "KVSTORE_EXT_TEST_MARK": job.mark}
        check = Check(*arguments, python=bare, environment=environment)
        assert_measured(check)
        job.assert_gone()


def assert_measured(check: Check) -> None:
    """Two tasks of this host, whose interpreter has no packages."""
    names = [f"{socket.gethostname()} ({number})" for number in range(2)]
    assert [host["name"] for host in check.report["hosts"]] == names, check.report
    assert check.host(names[1])["mxnet"]["state"] == WRONG
    links = check.links()
    assert list(links) == [(names[0], names[1]), (names[1], names[0])]
    assert all(link["bandwidth"] > 0 for link in links.values())
