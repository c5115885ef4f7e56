"""How workers find out that one of them has other parameters than the rest (option verify_every).

After every so many steps each leaves digests of its parameters, key by key, on server 0's board.
None waits for another one: once all have, or those that have not are known to have run out of
batches, the server compares, and ends the job where they differ.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np

from ..notes import printable

QUESTION = "digests"

# Of one worker's parameters, in the order of the keys' first values: names for people, and CRC-32C.
Digests = Dict[str, int]


class _Left(NamedTuple):
    host: str
    digests: Digests


class DigestBoard:
    """A server's. Its thread of questions answers.

    Parameters
    ----------
    workers
        How many there are.
    fail
        Ends the job with a reason.
    """

    def __init__(self, workers: int, fail: Callable[[str], None]) -> None:
        self._workers = workers
        self._fail = fail
        self._open: Dict[Tuple[int, int], Dict[int, _Left]] = {}  # by store and step; by rank

    def answer(self, asked: Dict[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        """Takes the digests of a worker, of this `rank` and `host`, after a `step` of a `store`:
        `keys` in order, and four bytes of data for each. Raises ValueError for what no worker
        says."""
        store, step, rank = (_number(asked[name]) for name in ("store", "step", "rank"))
        host, keys = _text(asked["host"]), asked["keys"]
        if type(keys) is not list or rank >= self._workers or len(data) != 4 * len(keys):
            raise ValueError(f"{len(data)} bytes are no digests of keys of rank {rank}")
        digests = dict(zip(map(_text, keys), np.frombuffer(data, "<u4").tolist()))
        left = self._open.setdefault((store, step), {})
        left[rank] = _Left(host, digests)
        # Who is further has had the sums of a step that all began who are not idle.
        whole = [other for other in self._open if other[0] == store and other[1] < step]
        if len(left) == self._workers:
            whole.append((store, step))
        for other in whole:
            difference = drift(other[1], self._open.pop(other))
            if difference:
                self._fail(f"server 0: {difference}")
        return {}, b""


def _number(value: object) -> int:
    if type(value) is int and value >= 0:
        return value
    raise ValueError(f"it must be a number from 0 on; found {str(value)[:20]!r}")


def _text(value: object) -> str:
    if isinstance(value, str):
        return printable(value)
    raise ValueError(f"it must be text; found {type(value).__name__}")


def drift(step: int, left: Dict[int, _Left]) -> str:
    """Who has drifted, and where first, in words; empty where all are alike.

    Most of the workers are right. Where as many have something else, nobody knows who is.
    """
    known = [each.digests for each in left.values()]
    # A Trainer that nobody holds any more may be gone on some workers already, with its keys.
    names = [name for name in known[0] if all(name in digests for digests in known)]
    groups: Dict[Tuple[int, ...], List[int]] = {}
    for rank in sorted(left):
        digests = left[rank].digests
        groups.setdefault(tuple(digests[name] for name in names), []).append(rank)
    if len(groups) < 2:
        return ""
    right, rival, *_ = sorted(groups.values(), key=len, reverse=True)
    drifted = [rank for rank in sorted(left) if rank not in right]
    usual, found = left[right[0]].digests, left[drifted[0]].digests
    keys = [name for name in names if usual[name] != found[name]]
    hosts = ", ".join(f"worker {rank} on {left[rank].host}" for rank in drifted)
    doubt = "" if len(right) > len(rival) else ", or the other way round"
    return (
        f"{_named(drifted)} {'has' if len(drifted) == 1 else 'have'} drifted: after step {step} "
        f"key {keys[0]} is not that of {_named(right)}{doubt}; {len(keys)} of {len(names)} keys "
        f"differ ({hosts})"
    )


def _named(ranks: List[int]) -> str:
    *others, last = map(str, ranks)
    return f"workers {', '.join(others)} and {last}" if others else f"worker {last}"
