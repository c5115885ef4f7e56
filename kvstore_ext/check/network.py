"""The address and the ports by which a process of a job on this host would be reached."""
from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path

from ..launcher import network
from .finding import Finding, note, wrong

# The range of ports that Linux gives to connections. One of them may take the port that the
# launcher has chosen for a process, before that process listens there.
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def own_address() -> str:
    """The address that a job's processes here would have; ValueError where there is none."""
    given = os.environ.get("DMLC_NODE_HOST")
    interface = os.environ.get("DMLC_INTERFACE")
    if given:
        return given
    if interface:
        return network.address_of(interface)
    return network.own_address(os.environ.get("SSH_CONNECTION"))


def address() -> Finding:
    """The address, which has to be one of this host's, and one that others can reach."""
    try:
        found = own_address()
    except ValueError as error:
        return wrong("address", str(error), "name one of these in DMLC_INTERFACE or --interface")
    addresses = network.interface_addresses()
    names = [name for name, each in addresses.items() if each == found]
    given = ["by DMLC_NODE_HOST"] if os.environ.get("DMLC_NODE_HOST") else []
    text = f"{found} ({', '.join([*names, *given])})"
    if not names and not network.is_own(found):
        remedy = f"set DMLC_NODE_HOST to one of this host's: {', '.join(addresses.values())}"
        return wrong("address", f"{text}, which is not one of this host's", remedy)
    if ipaddress.ip_address(socket.gethostbyname(found)).is_loopback:
        remedy = "for more hosts: connect this one to a network, or name it by --interface"
        return note("address", f"{text}, which no other host reaches", remedy)
    others = [
        f"{each} ({name})"
        for name, each in addresses.items()
        if each != found and not ipaddress.ip_address(each).is_loopback
    ]
    return Finding("address", "; also ".join([text, *others]))


def ports() -> Finding:
    """Whether a process here can listen where the launcher has it listen."""
    first, last = network.PORTS[0], network.PORTS[-1]
    at = _address_to_listen_at()
    if at is None:
        why = "this host has no address for a job"
        return note("ports", f"{first} to {last} were not tried, since {why}")
    try:
        port = network.free_port(at)
        with socket.create_server((at, port)), socket.create_connection((at, port), 5.0):
            pass
    except (OSError, ValueError) as error:
        remedy = f"let this host's processes listen on TCP ports {first} to {last}"
        return wrong("ports", f"{first} to {last} are closed: {error}", remedy)
    found = f"{first} to {last} are open on this host itself"
    lowest = _lowest_outgoing()
    if lowest is not None and lowest <= last:
        remedy = f"sysctl -w net.ipv4.ip_local_port_range='{last + 1} 60999'"
        return note("ports", f"{found}, and outgoing connections take some, from {lowest}", remedy)
    return Finding("ports", found)


def _address_to_listen_at() -> str | None:
    """own_address; None where `address` says what is wrong with that."""
    try:
        found = own_address()
    except ValueError:
        return None
    is_here = found in network.interface_addresses().values() or network.is_own(found)
    return found if is_here else None


def _lowest_outgoing() -> int | None:
    """The lowest port of outgoing connections; None in a sandbox that does not tell."""
    try:
        return int(_OUTGOING.read_text().split()[0])
    except OSError:
        return None
