"""This host's own addresses and free ports. IPv4, which is all that ps-lite speaks. Linux only."""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import random
import socket
import struct
from typing import Protocol

_SIOCGIFADDR = 0x8915

# Below the range from which Linux takes ports for outgoing connections and for "any free port":
# the port must stay free for the seconds until the scheduler has imported MXNet and binds it.
PORTS = range(20000, 32768)
_TRIES = 100


class Connection(Protocol):
    """A socket, bare or in asyncio's wrapping."""

    def setsockopt(self, level: int, name: int, value: int, /) -> None: ...


def interface_addresses() -> dict[str, str]:
    """Returns the first IPv4 address of each network interface that has one."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def address_of(interface: str) -> str:
    """Returns the interface's address; ValueError, with the ones there are, if it has none."""
    addresses = interface_addresses()
    if interface not in addresses:
        raise ValueError(
            f"no network interface '{interface}' with an IPv4 address on "
            f"{socket.gethostname()}; there are: {', '.join(sorted(addresses)) or 'none'}"
        )
    return addresses[interface]


def is_bridge(interface: str) -> bool:
    """Returns whether the interface is a bridge."""
    return os.path.isdir(f"/sys/class/net/{interface}/bridge")


def outward_addresses() -> list[str]:
    """Returns the addresses other hosts may reach this one by, the likeliest first.

    Bridges to containers and virtual machines, of which each host has its own with the same
    address, are none, unless the way out leads over one.
    """
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing: it only asks the routing table which
            # of our addresses faces the world (192.0.2.1 is reserved for documentation).
            probe.connect(("192.0.2.1", 9))
            found.append(probe.getsockname()[0])
        except OSError:
            pass
    found += [at for name, at in interface_addresses().items() if not is_bridge(name)]
    outward = [each for each in found if not ipaddress.ip_address(each).is_loopback]
    return list(dict.fromkeys(outward)) or ["127.0.0.1"]


def own_address(ssh_connection: str | None = None) -> str:
    """Returns the one address to tell the other hosts.

    `ssh_connection` is the variable SSH_CONNECTION, "client port server port": the address by
    which the launcher reached this host is the best there is, unless it came from the host itself,
    or the variable from another host: srun hands on that of the one where somebody has logged in.
    """
    reached_at = _reached_at(ssh_connection or "")
    return outward_addresses()[0] if reached_at is None else reached_at


def _reached_at(ssh_connection: str) -> str | None:
    """Returns the address at which sshd was reached; None where that is none for other hosts."""
    try:
        address = ipaddress.IPv4Address("".join(ssh_connection.split()[2:3]))
    except ValueError:  # IPv6, or UNKNOWN, where sshd was given something else than a connection
        return None
    return str(address) if not address.is_loopback and is_own(str(address)) else None


def is_own(address: str) -> bool:
    """Returns whether a process here can listen at this address or name."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def address_towards(other: str) -> str:
    """Returns the address of this host that another one, a name or an address, sees.

    Raises ValueError when no way leads there.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((other, 9))
        except OSError as error:
            raise ValueError(f"{socket.gethostname()} has no way to {other}: {error}") from None
        return str(probe.getsockname()[0])


def notice_silence(connection: Connection) -> None:
    """Has the kernel ask after a silent other end, and end the connection after a minute of it.

    The other host may have lost its power without a word. An end that has let nothing more come for
    that minute, while there is more to come than buffers hold, counts as gone as well.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    # While something sent is not acknowledged Linux asks nothing, and sends again for 15 minutes.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)


def free_port(address: str, wanted: int = 0, share: int = 0, shares: int = 1) -> int:
    """Returns a port on which a server can listen at `address`: `wanted` itself unless it is 0.

    Ports for different ones of the `shares` differ. Raises ValueError when `wanted` is taken or the
    address is not one of this host's.
    """
    ports = PORTS[share::shares]
    candidates = [wanted] if wanted else random.sample(ports, min(len(ports), _TRIES))
    for port in candidates:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As ZMQ does: connections of an earlier job that are still closing do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                probe.listen(1)
            except OSError as error:
                reason = error
                continue
            return port
    what = f"port {wanted}" if wanted else f"any of {_TRIES} ports from {ports[0]} to {ports[-1]}"
    taken = wanted and reason.errno == errno.EADDRINUSE
    raise ValueError(
        f"the host {socket.gethostname()} cannot listen at {address} on {what}: {reason.strerror}"
        + ("; leave --port out for a free one" if taken else "")
    )
