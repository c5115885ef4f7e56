"""What a host's processors take for what a store does, by its bytes, elements and messages."""
from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Costs:
    """Seconds of one processor.

    Parameters
    ----------
    message : float
        To send and receive one, whatever its size.
    byte : float
        To send and receive one: the kernel's and ZeroMQ's copies.
    encode, decode : float
        At a worker: an element's gradient, and its sum.
    add, encode_sum : float
        At a server: a worker's element, and the sum for the way back.
    update : float
        At a server: an element's optimizer; 0 where workers update.
    """

    message: float = 0.0
    byte: float = 0.0
    encode: float = 0.0
    decode: float = 0.0
    add: float = 0.0
    encode_sum: float = 0.0
    update: float = 0.0


    def of_share(self, share: float) -> Costs:
        """Where that share of the elements travels that codecs were measured with."""
        return replace(
            self, encode=share * self.encode, decode=share * self.decode, add=share * self.add
        )


FREE = Costs()
