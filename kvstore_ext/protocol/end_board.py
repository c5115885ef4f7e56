"""How all workers come to a common step at which the job ends, once a process was told to end.

Workers run ahead of each other, and one that stood still at once would keep others from getting to
where they could. So each says which of its next steps it will not go beyond, without waiting for
its script, and the latest of these is where all end. Server 0 has them on its board; other servers
have one for the news alone that they were told to end.
"""
from __future__ import annotations

from typing import Any, Dict, Tuple

from ..notes import printable

QUESTION = "end"


class EndBoard:
    """A server's. Its thread of questions answers, another one may set `told`.

    told
        Who was told to end, in words; empty while nobody was.
    ends
        Whether a worker has come to where all end, and writes its snapshot.
    """

    def __init__(self, workers: int) -> None:
        self.told = ""
        self.ends = False
        self._workers = workers
        self._at: Dict[int, int] = {}  # by rank

    def answer(self, asked: Dict[str, Any], _data: bytes) -> Tuple[Dict[str, Any], bytes]:
        """Takes what a worker knows: `told`, with its `rank` the count of steps `at` which it
        stops, and whether it `ends` now. Answers who was told, and where all end, 0 while not all
        have said theirs. Raises ValueError for what no worker says."""
        told, rank, at, ends = (asked[name] for name in ("told", "rank", "at", "ends"))
        kinds = [type(each) for each in (told, rank, at, ends)]
        if kinds != [str, int, int, bool] or at < 0:
            found = str(asked)[:200]
            raise ValueError(
                f"told, rank, at and ends are text, numbers and true or false; found {found}"
            )
        self.told = self.told or printable(told)
        self.ends = self.ends or ends
        if at and 0 <= rank < self._workers:
            self._at[rank] = at
        is_known = len(self._at) == self._workers
        return {"told": self.told, "at": max(self._at.values()) if is_known else 0}, b""
