"""What a host's processors take for what a store does, by its bytes, elements and messages."""
from __future__ import annotations

from dataclasses import dataclass, replace

MOST_SMALL = 16384  # bytes of a message that leaves together with others (csrc/transport/batch.h)


@dataclass(frozen=True)
class Costs:
    """Seconds of one processor.

    Parameters
    ----------
    message, small_message : float
        To send and receive one, whatever its size, and one of at most MOST_SMALL bytes.
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
    small_message: float = 0.0
    byte: float = 0.0
    encode: float = 0.0
    decode: float = 0.0
    add: float = 0.0
    encode_sum: float = 0.0
    update: float = 0.0

    def of_message(self, size: float) -> float:
        """To send and receive one of so many bytes, beside what each byte takes."""
        return self.message if size > MOST_SMALL else self.small_message

    def of_share(self, share: float) -> Costs:
        """Where only that share of the elements travels. What a server does with the sum it does
        with all of them."""
        return replace(
            self, encode=share * self.encode, decode=share * self.decode, add=share * self.add
        )


FREE = Costs()
