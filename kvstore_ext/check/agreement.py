"""What has to agree between the hosts of a job: versions, addresses and clocks."""
from __future__ import annotations

from typing import Sequence

from .finding import Finding, wrong
from .host import Host

_CLOCK_LIMIT = 1.0  # seconds, from which on logs of several hosts cannot be read side by side

# What has to be equal, and what to do where it is not. The order is that in which to mend it.
_VERSIONS = {
    "Python": "make the environments of all hosts with the same Python",
    "MXNet": "install the same MXNet on all hosts",
    "kvstore_ext": "install the same version on all hosts",
    "kvstore_ext's files": "install kvstore_ext from the same files on all hosts, and compile it "
    "there",
}


def compare_versions(hosts: Sequence[Host]) -> list[Finding]:
    """Says of Python, MXNet and kvstore_ext whether all hosts have the same."""
    findings = []
    for name, remedy in _VERSIONS.items():
        owners: dict[str, list[str]] = {}
        for host in hosts:
            # What a host lacks is said of the host.
            if host.traits[name] is not None:
                owners.setdefault(host.traits[name], []).append(host.name)
        if len(owners) > 1:
            found = ", ".join(f"{value} on {_names(names)}" for value, names in owners.items())
            findings.append(wrong("versions", f"{name} differs: {found}", remedy))
    if not findings:
        findings.append(Finding("versions", "the same on all hosts"))
    return findings


def compare_addresses(hosts: Sequence[Host], addresses: Sequence[str]) -> list[Finding]:
    """Says which machines would tell the others the same address."""
    machines: dict[str, dict[str, str]] = {}
    for host, address in zip(hosts, addresses):
        machines.setdefault(address, {}).setdefault(host.traits["machine"], host.name)
    return [
        wrong(
            "addresses",
            f"{_names(list(names.values()))} would all be reached at {address}",
            "choose the network that joins them by --interface",
        )
        for address, names in machines.items()
        if len(names) > 1
    ]


def compare_clocks(hosts: Sequence[Host], offsets: Sequence[tuple[float, float]]) -> Finding:
    """Says how far the clocks of hosts are apart, from their offsets and errors in seconds."""
    ahead = max(range(len(hosts)), key=lambda index: offsets[index][0])
    behind = min(range(len(hosts)), key=lambda index: offsets[index][0])
    apart = offsets[ahead][0] - offsets[behind][0]
    error = offsets[ahead][1] + offsets[behind][1]
    found = f"{apart:.3f} s apart at most, ± {error:.3f} s"
    if apart - error <= _CLOCK_LIMIT:
        return Finding("clocks", found)
    names = f"{hosts[ahead].name} is ahead of {hosts[behind].name}"
    remedy = "start chrony or systemd-timesyncd on all hosts"
    return wrong("clocks", f"{found}: {names}", remedy)


def _names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
