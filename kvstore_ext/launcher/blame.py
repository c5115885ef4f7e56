"""Who is to blame for a failed job: not always the process that ends first.

When a worker's script raises, the others hear of it and end too, some of them sooner than the one
that was the cause. But each reports why it ends, in words that begin with a process's name.
"""

from __future__ import annotations

import asyncio
import re
from typing import NamedTuple, Sequence

from .running import Running

# Seconds after the first failure in which the process that others name may end as well.
SETTLE = 3.0

# "server 0: worker 1 has not pushed ...": who says it, if anybody; then whom it names.
_SPEAKER = re.compile(r"(worker|server) (\d+): ")
_NAMED = re.compile(
    r"(?:within [\d.]+ s |no answer from )*(worker|server)s? (\d+(?:(?:, | and )\d+)*)\b"
)
_ALL = re.compile(r"workers [a-z]")


class Verdict(NamedTuple):
    """The process to blame; `accuser` has said so where it did not fail by itself."""

    culprit: Running
    accuser: Running | None = None


def accused(reason: str) -> list[str]:
    """Returns the names of those whom a reason blames.

    Where it names only who says it, as in "worker 1: its script failed", that one is to blame;
    where it says of all that "workers opened different stores", nobody is.
    """
    speaker = _SPEAKER.match(reason)
    said_at = speaker.end() if speaker else 0
    found = _NAMED.match(reason, said_at) or speaker
    if found is None or _ALL.match(reason, said_at):
        return []
    return [f"{found[1]} {rank}" for rank in re.findall(r"\d+", found[2])]


async def find_culprit(first: Running, processes: Sequence[Running]) -> Verdict:
    """Returns who is to blame after `first` has failed: at once, or SETTLE seconds later.

    Above all a process that has failed and blames no other, then the first one that is named.
    """
    loop = asyncio.get_running_loop()
    latest = loop.time() + SETTLE
    named = accused(first.account.reason)
    while True:
        guilty = [each for each in processes if _has_failed(each) and not _blames_others(each)]
        guilty.sort(key=lambda each: each.process.name not in named)
        if guilty:
            return Verdict(guilty[0])
        waited_for = [each for each in processes if each.process.name in named]
        pending = [each.ended for each in processes if not each.ended.done()]
        left = latest - loop.time()
        if left <= 0 or all(each.ended.done() for each in waited_for):
            return Verdict(waited_for[0], first) if waited_for else Verdict(first)
        await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)


def _has_failed(running: Running) -> bool:
    return running.ended.done() and running.ended.result().status != 0


def _blames_others(running: Running) -> bool:
    names = accused(running.account.reason)
    return bool(names) and running.process.name not in names
