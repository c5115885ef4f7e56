"""What hosts have to agree in, and what is said where they do not."""

from __future__ import annotations

from typing import Any

from kvstore_ext.check.agreement import compare_addresses, compare_clocks, compare_versions
from kvstore_ext.check.finding import OK, WRONG, Finding
from kvstore_ext.check.host import Host
from kvstore_ext.check.remedies import remedy_for_start
from kvstore_ext.check.report import Link, Report, as_text


def host(name: str, **others: Any) -> Host:
    same = {"Python": "3.11", "MXNet": "1.9.1", "kvstore_ext": "0.1.0", "machine": name}
    return Host(name, [], {**same, "kvstore_ext's files": "abc", **others})


def test_versions() -> None:
    alike = [host("one"), host("two"), host("three", MXNet=None)]
    assert [each.state for each in compare_versions(alike)] == [OK]
    different = [host("one"), host("two"), host("three", MXNet="1.8.0", kvstore_ext="0.2.0")]
    found = compare_versions(different)
    assert [each.state for each in found] == [WRONG, WRONG]
    assert found[0].found == "MXNet differs: 1.9.1 on one and two, 1.8.0 on three"
    assert found[1].found == "kvstore_ext differs: 0.1.0 on one and two, 0.2.0 on three"


def test_addresses() -> None:
    hosts = [host("one"), host("two"), host("three")]
    assert compare_addresses(hosts, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]) == []
    [found] = compare_addresses(hosts, ["172.17.0.1", "10.0.0.2", "172.17.0.1"])
    assert found.found == "one and three would all be reached at 172.17.0.1"
    assert "--interface" in found.remedy
    one_machine = [host("one", machine="same"), host("two", machine="same")]
    assert compare_addresses(one_machine, ["127.0.0.1", "127.0.0.1"]) == []


def test_clocks() -> None:
    hosts = [host("one"), host("two"), host("three")]
    near = compare_clocks(hosts, [(0.0, 0.001), (0.9, 0.001), (-0.05, 0.002)])
    assert (near.state, near.found) == (OK, "0.950 s apart at most, ± 0.003 s")
    far = compare_clocks(hosts, [(0.0, 0.001), (3.0, 0.001), (-1.0, 0.002)])
    assert far.state == WRONG
    assert far.found == "4.000 s apart at most, ± 0.003 s: two is ahead of three"
    unsure = compare_clocks(hosts, [(0.0, 0.001), (3.0, 2.0), (-1.0, 2.0)])
    assert unsure.state == OK


def test_text_for_several_hosts() -> None:
    same, differs = Finding("numpy", "1.23.5"), Finding("memory", "none", WRONG, "buy some")
    one, two = Host("one", [same, Finding("memory", "8 GiB")], {}), Host("two", [same, differs], {})
    links = [Link("one", "two", 0.00123, 1.25e8), Link("two", "one", error="no", remedy="open it")]
    clocks = Finding("clocks", "0 s apart")
    assert as_text(Report([one, two], [clocks], links)).splitlines() == [
        "ok     numpy        all: 1.23.5",
        "ok     memory       one: 8 GiB",
        "wrong  memory       two: none",
        "                    remedy: buy some",
        "ok     clocks       0 s apart",
        "",
        "Round trip, ms (rows from, columns to)",
        "               0        1",
        " 0  one              1.23",
        " 1  two     none",
        "",
        "Bandwidth, Mbit/s (rows from, columns to)",
        "               0        1",
        " 0  one              1000",
        " 1  two     none",
        "",
        "wrong  link         two to one: no",
        "                    remedy: open it",
        "",
        "Found wrong: 2, each with its remedy above.",
    ]


def test_hosts_that_cannot_be_reached() -> None:
    for error, remedy in (
        ("user@one: Permission denied (publickey).", "ssh-copy-id one"),
        ("Host key verification failed.", "accept the host's key: ssh one"),
        ("ssh: Could not resolve hostname one: Name or service not known", "its name"),
        ("ssh: connect to host one port 22: Connection refused", "start sshd"),
        ("ssh: connect to host one port 22: Connection timed out", "switch it on"),
        ("its supervisor did not start within 60 s", "switch it on"),
        ("python: can't open file '/a/__main__.py': [Errno 2]", "at the same path as here"),
        ("bash: line 1: /a/bin/python: No such file or directory", "by --python"),
        ("probe 0: no network interface 'eth1' with an IPv4 address", "--interface"),
    ):
        assert remedy in remedy_for_start("one", error), error
    assert "--python" in remedy_for_start("one", "ssh ended with exit status 127", 127)


def test_only_a_command_that_stands_there_is_to_be_run_by_hand() -> None:
    tried = "ssh ended with exit status 255; try: ssh -p 22 one true: kex_exchange: reset"
    assert remedy_for_start("one", tried, 255).startswith("run the command above by hand")
    for error, status in (
        ("has not answered within 300 s", 0),
        ("was killed by signal 9 (SIGKILL)", 0),
        ("ssh ended with exit status 3: why", 3),
    ):
        remedy = "see that host's own log, or try: ssh one true"
        assert remedy_for_start("one", error, status) == remedy
    for name in ("node1 (0)", "host 0"):
        remedy = remedy_for_start(name, "has not answered within 300 s")
        assert remedy == "see that host's own log, or have mpirun or srun run `true` there"
