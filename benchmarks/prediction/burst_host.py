"""A host of `bursts.py`, in its namespace: sends all others a burst at a time, and counts theirs.

It says in a line when all are connected, reads when to begin, and writes what came as JSON. It
imports the standard library alone, since many of them start at a time.
"""
from __future__ import annotations

import json
import socket
import sys
import threading
import time
from typing import Dict, List

LOOKS = (0.5, 1.0, 1.1, 1.25)  # of the time that full links would take
_PORT = 5000
_LISTENING = 30  # seconds until all hosts do, at most


def main() -> None:
    number, hosts, size, bursts = map(int, sys.argv[1:5])
    host = _Host(number, hosts, size)
    print("ready", flush=True)
    print(json.dumps(host.work(float(sys.stdin.readline()), float(sys.argv[5]), bursts)))


class _Host:
    """Connected with all others, both ways."""

    def __init__(self, number: int, hosts: int, size: int) -> None:
        self._size = size
        self._came: Dict[int, int] = {}
        server = socket.create_server(("0.0.0.0", _PORT))
        server.settimeout(_LISTENING)
        others = [other for other in range(hosts) if other != number]
        self._connections = [_connected(f"10.77.0.{other + 1}") for other in others]
        for other in others:
            taken, _ = server.accept()  # which has no limit itself
            self._came[other] = 0
            threading.Thread(target=self._receive, args=(taken, other), daemon=True).start()

    def work(self, begin: float, least: float, bursts: int) -> Dict[str, object]:
        """Tells the share that came of each burst, by looks and who sent it, and send buffers."""
        starts = [begin + burst * (2 * least + 1) for burst in range(bursts)]
        for connection in self._connections:
            sending = threading.Thread(target=self._send, args=(connection, starts), daemon=True)
            sending.start()
        came = []
        for burst, start in enumerate(starts):
            looks: List[Dict[int, float]] = []
            for look in LOOKS:
                _sleep_until(start + look * least)
                looks.append({other: each / self._size - burst
                              for other, each in self._came.items()})  # fmt: skip
            came.append(looks)
        _sleep_until(starts[-1] + 2 * least + 1)
        buffers = [each.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
                   for each in self._connections]  # fmt: skip
        return {"came": came, "buffers": buffers}

    def _receive(self, taken: socket.socket, other: int) -> None:
        buffer = bytearray(1 << 17)
        while count := taken.recv_into(buffer):
            self._came[other] += count

    def _send(self, connection: socket.socket, starts: List[float]) -> None:
        for start in starts:
            _sleep_until(start)
            connection.sendall(bytes(self._size))


def _connected(address: str) -> socket.socket:
    """As soon as the other host listens."""
    latest = time.monotonic() + _LISTENING
    while True:
        try:
            connection = socket.create_connection((address, _PORT), timeout=_LISTENING)
            connection.settimeout(None)
            return connection
        except ConnectionRefusedError:
            if time.monotonic() > latest:
                raise
            time.sleep(0.1)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


if __name__ == "__main__":
    main()
