"""How fast a host's processors do what a store asks of them, and what was fitted.

Defaults are rough; `measuring.py` measures a host's codecs and additions.
"""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Dict

from .costs import Costs


class SpeedsError(ValueError):
    """A file that has no speeds."""


@dataclass(frozen=True)
class Speeds:
    """Of one processor.

    Parameters
    ----------
    message, small_message, byte : float
        Seconds to send and receive a message, whatever its size, a small one together with others,
        and each byte of them.
    stock_message, stock_byte : float
        Likewise with MXNet's own stores.
    add, update : float
        Seconds to add up an element, and to have SGD update it.
    codecs : dict
        By compression seconds of an element that travels: to `encode` it, to `add` it up and to
        `decode` its sum; and of any element to `encode_sum`.
    wake : float
        Seconds by which a thread comes late to what it is told.
    ring_byte, ring_step : float
        Of a ring: seconds to add up a byte, and of each step beside the wire.
    """

    message: float = 2e-5
    # Fitted to the run of p3 with ResNet-50 and slices of 1,000 elements in p3-slices.jsonl.
    small_message: float = 1e-5
    byte: float = 2.5e-10
    stock_message: float = 4e-5
    stock_byte: float = 5e-10
    add: float = 3e-10
    update: float = 1e-9
    codecs: Dict[str, Dict[str, float]] = field(default_factory=dict)
    wake: float = 1e-4
    ring_byte: float = 2e-10
    ring_step: float = 2e-4

    def costs(self, codec: str, updates: bool) -> Costs:
        """Of the lane with a compression, or "" for none."""
        own = self.codecs.get(codec, {})
        return Costs(
            message=self.message,
            small_message=self.small_message,
            byte=self.byte,
            encode=own.get("encode", 0.0),
            decode=own.get("decode", 0.0),
            add=own.get("add", self.add),
            encode_sum=own.get("encode_sum", 0.0),
            update=self.update if updates else 0.0,
        )

    def stock(self) -> Costs:
        """Of MXNet's own servers."""
        message = self.stock_message
        return Costs(message, small_message=message, byte=self.stock_byte, add=self.add)

    def save(self, file: Path) -> None:
        """Writes them as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, file: Path) -> Speeds:
        """Reads what `save` has written, of this host or of another.

        Raises
        ------
        SpeedsError
            Where the file has something else.
        """
        known = [each.name for each in fields(cls)]
        try:
            values = dict(json.loads(file.read_text()))
            codecs = values.get("codecs", {})
            seconds = [value for name, value in values.items() if name != "codecs"]
            seconds += [value for codec in codecs.values() for value in codec.values()]
            wrong = [value for value in seconds if not 0 <= value < float("inf")]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise SpeedsError(f"{file} has no speeds: {error}") from error
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise SpeedsError(f"{file} has {unknown[0]!r}; speeds are {', '.join(known)}")
        if wrong:
            raise SpeedsError(f"{file} has {wrong[0]}; speeds are seconds, 0 or more")
        return cls(**values)
