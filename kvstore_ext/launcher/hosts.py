"""The hostfile, and which process goes to which host."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Sequence

# A name that began with '-' would be read as an option by ssh.
_NAME = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*")


@dataclass(frozen=True)
class Host:
    """A host: `port` is ssh's, `slots` the most workers it takes; None: the usual, any number."""

    name: str
    port: int | None = None
    slots: int | None = None


def read_hostfile(path: str) -> list[Host]:
    """Returns the hosts of a file with one `name[:port] [slots=N]` a line and `#` comments.

    Raises ValueError, naming file, line and text, for anything else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"hostfile {path} cannot be read: {error}") from None
    hosts = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            hosts.append(_parse_host(text, f"hostfile {path}, line {number}"))
    if not hosts:
        raise ValueError(f"hostfile {path} names no host")
    names = [host.name for host in hosts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"hostfile {path} names {name} {names.count(name)} times, not once")
    return hosts


def _parse_host(text: str, where: str) -> Host:
    address, *fields = text.split()
    name, colon, port = address.partition(":")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where}: '{name}' is not the name of a host")
    if colon and not (port.isdigit() and 1 <= int(port) <= 65535):
        raise ValueError(f"{where}: found port '{port}', allowed are 1 to 65535")
    slots = None
    for field in fields:
        match = re.fullmatch(r"slots=(\d+)", field)
        if not match or int(match.group(1)) < 1:
            raise ValueError(f"{where}: found '{field}', allowed is slots=N with N of 1 or more")
        slots = int(match.group(1))
    return Host(name, int(port) if colon else None, slots)


def deal_workers(hosts: Sequence[Host], count: int) -> list[Host]:
    """Deals `count` workers to the hosts in turn, passing over a host whose slots are full.

    Raises ValueError when there are fewer slots than workers.
    """
    dealt: list[Host] = []
    taken: dict[str, int] = {host.name: 0 for host in hosts}
    for host in itertools.cycle(hosts):
        if len(dealt) == count:
            return dealt
        if all(each.slots is not None and taken[each.name] >= each.slots for each in hosts):
            raise ValueError(f"{count} workers, but the hostfile has slots for only {len(dealt)}")
        if host.slots is None or taken[host.name] < host.slots:
            taken[host.name] += 1
            dealt.append(host)
    raise ValueError("no hosts")


def deal_servers(hosts: Sequence[Host], count: int) -> list[Host]:
    """Deals `count` servers to the hosts in turn; slots are for workers."""
    return list(itertools.islice(itertools.cycle(hosts), count))


def host_called(name: str, hosts: Sequence[Host]) -> Host | None:
    """Returns the one of these hosts that calls itself so, with its domain or without; None where
    no host does, or more than one."""
    found = [host for host in hosts if host.name == name]
    found = found or [host for host in hosts if _short(host.name) == _short(name)]
    return found[0] if len(found) == 1 else None


def _short(name: str) -> str:
    """Returns the name of a host without a user before it, and without a domain."""
    return name.rpartition("@")[2].partition(".")[0].lower()
