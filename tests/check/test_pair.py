"""What is measured between two hosts, and that only the check can ask for it."""

from __future__ import annotations

import socket
import threading
from typing import Iterator

import pytest
from kvstore_ext.check import pair
from kvstore_ext.check.pair import Listener, PeerError, measure
from kvstore_ext.check.probe import measure_to
from kvstore_ext.check.remedies import remedy_for_pair
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


def test_large_packets_that_are_lost(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a link whose ends have a larger MTU than what lies between them."""
    over = threading.Event()

    def never(connection: socket.socket, count: int) -> tuple[int, float]:
        over.wait(60.0)
        raise ConnectionError("the test is over")

    monkeypatch.setattr(pair, "_take", never)
    monkeypatch.setattr(pair, "_STEP_LIMIT", 3.0)
    address, port = listener.server_address
    answer = measure_to(address, port, TOKEN.hex())
    over.set()
    place = f"{address}:{port}"
    assert answer == {
        "error": f"{place} answers small messages, and has not taken 65536 bytes within 3 s",
        "kind": "lossy",
    }
    assert "make the MTU the same on one and two" in remedy_for_pair("lossy", "one", "two")
