"""Hosts, a switch and the links between them, as long as a context is open."""
from __future__ import annotations

import subprocess
from dataclasses import dataclass
from types import TracebackType
from typing import Any, List, Optional, Sequence, Tuple, Type, Union

from benchmarks.cluster import namespaces
from benchmarks.cluster.claims import Claim
from benchmarks.cluster.namespaces import INTERFACE, ClusterError, Link

MOST_HOSTS = 250


@dataclass(frozen=True)
class Host:
    """A namespace with an address; the switch is one as well."""

    name: str
    address: str
    namespace: str

    @property
    def hardware_address(self) -> str:
        """Of its interface: made of its address, so that others need not ask for it."""
        return ":".join(["02:00", *(f"{int(part):02x}" for part in self.address.split("."))])

    @property
    def within(self) -> List[str]:
        """What a command that is to run on the host begins with."""
        return ["ip", "netns", "exec", self.namespace]


class Cluster:
    """Hosts that reach each other through a switch. Used as a context manager.

    Clusters of one machine have the same addresses and do not see each other.

    Parameters
    ----------
    hosts : int
        How many, 1 to 250.
    link : Link or sequence of Link
        That of all hosts, or of each.

    Attributes
    ----------
    hosts : list of Host
    switch : Host
        Without a limit to its own rate: where a scheduler runs.

    Raises
    ------
    ClusterError
        On entering: without root, without iproute2, or where the kernel lacks what is asked for.
    """

    def __init__(self, hosts: int, link: Union[Link, Sequence[Link]] = Link()) -> None:  # noqa: B008
        if not 1 <= hosts <= MOST_HOSTS:
            raise ClusterError(f"hosts is {hosts}; it must be 1 to {MOST_HOSTS}")
        self._links = [link] * hosts if isinstance(link, Link) else list(link)
        if len(self._links) != hosts:
            raise ClusterError(f"there are {len(self._links)} links; {hosts} hosts need as many")
        self.hosts: List[Host] = []
        self.switch = Host("switch", "", "")
        self._claim: Optional[Claim] = None

    def __enter__(self) -> Cluster:
        namespaces.check_possible()
        self._claim = Claim()
        try:
            self._make(self._claim)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _kind: Optional[Type[BaseException]],
        _error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        assert self._claim is not None, "a cluster is a context manager: with Cluster(...)"
        try:
            self._claim.remove_all()
        finally:
            self._claim.release()
            self._claim = None

    def start(self, host: Host, command: Sequence[str], **popen: Any) -> subprocess.Popen[Any]:
        """Starts a command on a host, as subprocess.Popen does."""
        return subprocess.Popen([*host.within, *command], **popen)

    def counters(self, host: Host) -> Tuple[int, int]:
        """Bytes that a host has sent and received, with Ethernet's headers."""
        return namespaces.counters(host.namespace)

    def cut_off(self, host: Host) -> None:
        """Pulls a host's cable: nothing leaves it or reaches it until `bring_back`.

        What runs there goes on and hears of nothing; its link keeps its shape.
        """
        namespaces.configure(self.switch.namespace, [f"link set {self._port(host)} down"])

    def bring_back(self, host: Host) -> None:
        """Plugs it in again. TCP sends what was lost again, at the latest after another time as
        long as the host was away."""
        namespaces.configure(self.switch.namespace, [f"link set {self._port(host)} up"])

    def _port(self, host: Host) -> str:
        return f"port{self.hosts.index(host)}"

    def _make(self, claim: Claim) -> None:
        self.switch = Host("switch", "10.77.0.254", claim.namespace("switch"))
        bridge = [
            f"link add bridge address {self.switch.hardware_address} type bridge",
            f"addr add {self.switch.address}/24 dev bridge",
        ]
        routes = self._routes("bridge", self.switch)
        namespaces.make(self.switch.namespace, [*bridge, "link set bridge up", *routes])
        for number, link in enumerate(self._links):
            host = Host(f"host {number}", f"10.77.0.{number + 1}", claim.namespace(str(number)))
            self.hosts.append(host)
            self._connect(host, link)
        for host in self.hosts:
            namespaces.configure(host.namespace, self._others(host, INTERFACE))
        namespaces.configure(self.switch.namespace, self._others(self.switch, "bridge"))

    def _others(self, host: Host, interface: str) -> List[str]:
        """Commands by which a host knows all others from the beginning.

        The kernel has room for 1024 of those that hosts ask for, in all namespaces together, and 32
        hosts would need more: connections would fail.
        """
        return [
            f"neigh replace {other.address} lladdr {other.hardware_address} dev {interface} "
            "nud permanent"
            for other in (*self.hosts, self.switch) if other != host
        ]

    def _routes(self, interface: str, host: Host) -> List[str]:
        limits = [limit for link in self._links for limit in (link.send, link.receive) if limit]
        return namespaces.routes(interface, host.address, min(limits, default=0))

    def _connect(self, host: Host, link: Link) -> None:
        port = self._port(host)
        namespaces.make(
            host.namespace,
            [
                f"link add {INTERFACE} address {host.hardware_address} type veth "
                f"peer name {port} netns {self.switch.namespace}",
                f"addr add {host.address}/24 dev {INTERFACE}",
                f"link set {INTERFACE} up",
                *self._routes(INTERFACE, host),
            ],
        )
        namespaces.configure(self.switch.namespace, [f"link set {port} master bridge up"])
        namespaces.shape(
            host.namespace, INTERFACE, link.send, namespaces.HOST_QUEUE, link.delay)
        namespaces.shape(
            self.switch.namespace, port, link.receive, namespaces.SWITCH_QUEUE)
