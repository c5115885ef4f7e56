"""Texts that are nearly what a process of the job would say: seeds with something changed."""
from __future__ import annotations

import json
import random
from typing import Any, List, Sequence

# What stands where something else should.
_VALUES: List[Any] = [
    None, True, 0, -1, 3, 1 << 40, 10**300, 1.5, -0.0, float("inf"), float("nan"), "", "a",
    "\ud800", "\u00e9", "x" * 70000, [], {}, [[]], ["list"], ["again", 0], {"size": 1},
    {"size": -1},
]  # fmt: skip
_PIECES = [b"", b"\n", b"\0", b"[" * 20000, b'{"a":' * 20000, b"\xff", b"1e999", b"9" * 5000, b"-"]


class Mutations:
    """Made of seeds by a stream of random numbers: the same for the same seed of that."""

    def __init__(self, seeds: Sequence[bytes], seed: int) -> None:
        self._seeds = list(seeds) or [b""]
        self._random = random.Random(seed)

    def next(self) -> bytes:
        """One of them."""
        lines = self._random.choice(self._seeds).split(b"\n")
        for _ in range(self._random.choice((1, 1, 2, 4))):
            at = self._random.randrange(len(lines))
            change = self._in_json if self._random.random() < 0.7 else self._in_bytes
            lines[at] = change(lines[at])
        return b"\n".join(lines)

    def _in_json(self, line: bytes) -> bytes:
        """Another value somewhere in what JSON says."""
        try:
            said = [json.loads(line)]
        except (ValueError, RecursionError):
            return self._in_bytes(line)
        places = [(said, 0), *_places(said[0])]
        holder, place = self._random.choice(places)
        other_holder, other = self._random.choice(places)
        chosen = self._random.choice((self._random.choice(_VALUES), other_holder[other]))
        if self._random.random() < 0.2:
            chosen = [chosen] * self._random.choice((0, 1, 2))
        holder[place] = chosen
        try:
            return json.dumps(said[0]).encode()
        except (ValueError, RecursionError):  # it has come into itself
            return line

    def _in_bytes(self, line: bytes) -> bytes:
        begin, end = sorted(self._random.randrange(len(line) + 1) for _ in range(2))
        piece = self._random.choice(
            (self._random.choice(_PIECES), bytes([self._random.randrange(256)]), line[begin:end])
        )
        if self._random.random() < 0.5:
            end = begin
        return line[:begin] + piece + line[end:]


def _places(value: Any) -> List[Any]:
    """Where values lie in what JSON says: the list or table, and the place in it."""
    if not isinstance(value, (list, dict)):
        return []
    places = list(value) if isinstance(value, dict) else range(len(value))
    found: List[Any] = [(value, place) for place in places]
    for place in places:
        found += _places(value[place])
    return found
