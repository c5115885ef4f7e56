"""What TCP of a host has sent again, as its kernel counts it."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict


@dataclass(frozen=True)
class Segments:
    """Of all of a host's connections, since the host was made.

    Attributes
    ----------
    sent_again : segments, whatever the reason.
    timeouts : how often nothing was acknowledged for so long that TCP began again, slowly.
    """

    sent_again: int
    timeouts: int

    @classmethod
    def now(cls) -> Segments:
        again = _count("snmp", "Tcp:", "RetransSegs")
        return cls(again, _count("netstat", "TcpExt:", "TCPTimeouts"))

    def since(self, before: Segments) -> Dict[str, int]:
        """How many more, by their names."""
        return {
            "sent_again": self.sent_again - before.sent_again,
            "timeouts": self.timeouts - before.timeouts,
        }


def _count(file: str, protocol: str, name: str) -> int:
    lines = Path(f"/proc/self/net/{file}").read_text().splitlines()
    names, numbers = (line.split() for line in lines if line.startswith(protocol))
    return int(numbers[names.index(name)])
