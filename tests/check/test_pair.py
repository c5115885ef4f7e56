"""What is measured between two hosts, and that only the check can ask for it."""

from __future__ import annotations

import socket
import threading
from typing import Iterator

import pytest
from kvstore_ext.check.pair import Listener, PeerError, measure
from kvstore_ext.launcher.network import free_port

ADDRESS = "127.0.0.1"
TOKEN = b"of this check"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener(ADDRESS, free_port(ADDRESS), TOKEN) as listener:
        yield listener
        listener.shutdown()


def test_measures_a_link(listener: Listener) -> None:
    found = measure(*listener.server_address, token=TOKEN)
    assert found.round_trip > 0
    assert found.bandwidth > 0


def test_stranger_learns_nothing(listener: Listener) -> None:
    with pytest.raises(PeerError, match="does not answer as the check does"):
        measure(*listener.server_address, token=b"of another check")
    nonces = set()
    for _ in range(2):
        with socket.create_connection(listener.server_address) as stranger:
            nonces.add(stranger.recv(1000))
            stranger.sendall(b"P" * 32)  # as long as what proves to know the token
            assert stranger.recv(1000) == b""
    assert {len(nonce) for nonce in nonces} == {32}
    assert len(nonces) == 2


def test_another_program_listens_there() -> None:
    with socket.create_server((ADDRESS, 0)) as other:
        hangs_up = threading.Thread(
            target=lambda: other.accept()[0].close(), name="hang up"
        )
        hangs_up.start()
        with pytest.raises(PeerError):
            measure(*other.getsockname(), token=TOKEN)
        hangs_up.join()


def test_nobody_listens_there() -> None:
    with pytest.raises(ConnectionRefusedError):
        measure(ADDRESS, free_port(ADDRESS), TOKEN)
