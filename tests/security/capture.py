"""What goes over the loopback, as somebody sees it who reads the network."""

from __future__ import annotations

import socket
import threading
from collections import Counter

_ALL = 3  # ETH_P_ALL, of <linux/if_ether.h>
_FORCED_BUFFER = 33  # SO_RCVBUFFORCE
_PORT = slice(36, 38)  # behind a header of Ethernet, one of IPv4, and the port that it comes from


class Capture:
    """From its start on, by root. `found` counts the packets with each pattern, `found_bytes` their
    bytes, and `bytes_to` all bytes by the TCP port that they go to, those of others on this machine
    too."""

    def __init__(self, *patterns: bytes) -> None:
        self.found = dict.fromkeys(patterns, 0)
        self.found_bytes = dict.fromkeys(patterns, 0)
        self.bytes_to: Counter[int] = Counter()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, 1 << 28)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.2)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="capture")
        self._thread.start()

    def close(self) -> None:
        """Stops, once it has looked at all that has been captured."""
        self._ended.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while True:
            try:
                packet = self._socket.recv(1 << 17)
            except socket.timeout:
                if self._ended.is_set():
                    return
                continue
            self.bytes_to[int.from_bytes(packet[_PORT], "big")] += len(packet)
            for pattern in self.found:
                if pattern in packet:
                    self.found[pattern] += 1
                    self.found_bytes[pattern] += len(packet)
