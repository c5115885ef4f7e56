"""Which address a supervisor tells the launcher, and when a connection to it counts as lost."""

from __future__ import annotations

import socket

import pytest
from kvstore_ext.launcher import network
from kvstore_ext.launcher.supervisor import reserve

# 192.0.2.0/24 is reserved for documentation: no host has these.
ELSEWHERE = "192.0.2.7 50000 192.0.2.1 22"


@pytest.mark.parametrize(
    "connection", [ELSEWHERE, "UNKNOWN 65535 UNKNOWN 65535", "::1 50000 ::1 22", "nonsense", ""]
)
def test_a_login_elsewhere_does_not_say_where_a_process_listens(
    monkeypatch: pytest.MonkeyPatch, connection: str
) -> None:
    """srun hands on the variable of the host where it was called."""
    monkeypatch.setenv("SSH_CONNECTION", connection)
    found = reserve(None, None, None, 0, 0, 1)
    assert found["address"] == network.outward_addresses()[0]
    assert found["port"] in network.PORTS


def test_where_sshd_was_reached_others_reach_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "outward_addresses", lambda: ["192.0.2.9"])
    monkeypatch.setattr(network, "is_own", lambda address: True)
    assert network.own_address(ELSEWHERE) == "192.0.2.1"
    assert network.own_address("127.0.0.1 50000 127.0.0.1 22") == "192.0.2.9"


def test_a_connection_ends_after_a_minute_of_silence() -> None:
    """Whether something that was sent waits for an acknowledgement, or nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        network.notice_silence(connection)

        def option(name: int) -> int:
            return connection.getsockopt(socket.IPPROTO_TCP, name)

        probes = option(socket.TCP_KEEPINTVL) * option(socket.TCP_KEEPCNT)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert option(socket.TCP_KEEPIDLE) + probes == 60
        assert option(socket.TCP_USER_TIMEOUT) == 60_000
