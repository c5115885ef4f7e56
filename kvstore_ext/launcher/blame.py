"""Who is to blame for a failed job: not always the process that ends first.

When a worker's script raises, the others hear of it and end too, some of them sooner than the one
that was the cause. But each reports why it ends, in words that begin with a process's name.
"""

from __future__ import annotations

import asyncio
import re
from typing import NamedTuple, Sequence

from .running import Running, all_have_joined

# Seconds after the first failure in which the process that others name may end as well.
SETTLE = 3.0

# "server 0: worker 1 has not pushed ...": who says it, if anybody; then whom it names.
_SPEAKER = re.compile(r"(worker|server) (\d+): ")
_NAMED = re.compile(
    r"(?:within [\d.]+ s |no (?:answer|sign of life) from )*"
    r"(worker|server)s? (\d+(?:(?:, | and )\d+)*)\b"
)
_NOBODY = re.compile(r"workers [a-z]|\d+ messages? of ")


class Verdict(NamedTuple):
    """The process to blame; where it has not failed, `reason` is what another has said of it."""

    culprit: Running
    reason: str = ""


def accused(reason: str) -> list[str]:
    """Returns the names of those whom a reason blames.

    Where it names only who says it, as in "worker 1: its script failed", that one is to blame;
    where it says of all that "workers opened different stores", or of messages that they were lost
    on their way, nobody is.
    """
    speaker = _SPEAKER.match(reason)
    said_at = speaker.end() if speaker else 0
    found = _NAMED.match(reason, said_at) or speaker
    if found is None or _NOBODY.match(reason, said_at):
        return []
    return [f"{found[1]} {rank}" for rank in re.findall(r"\d+", found[2])]


async def find_culprit(first: Running, processes: Sequence[Running]) -> Verdict:
    """Returns who is to blame after `first` has failed: at once, or SETTLE seconds later.

    Above all a process that has failed and blames no other, then the first one that is named. One
    that has failed without a word is not to blame at once while anybody names others: it may have
    been told of the failure.
    """
    loop = asyncio.get_running_loop()
    latest = loop.time() + SETTLE
    while True:
        reason, named = _first_accusation([first, *processes])
        guilty = [each for each in processes if _is_guilty(each, named)]
        guilty.sort(key=lambda each: _name(each) not in named)
        if guilty:
            return Verdict(guilty[0])
        waited_for = [each for each in processes if _name(each) in named]
        pending = [each.ended for each in processes if not each.ended.done()]
        left = latest - loop.time()
        if left <= 0 or all(each.ended.done() for each in waited_for):
            return Verdict(waited_for[0], reason) if waited_for else Verdict(first)
        await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)


def can_be_spared(running: Running, processes: Sequence[Running], own_servers: bool) -> bool:
    """Returns whether the job goes on although this process has failed: a server or a scheduler of
    kvstore_ext's whose workers have all ended well; and a scheduler as soon as the job stands,
    unless it ends because another process has failed."""
    role = running.process.role
    if role == "worker" or not own_servers or running.ended.result().status == 0:
        return False
    workers = [each for each in processes if each.process.role == "worker"]
    if not all_have_joined(processes):
        return False
    if all(each.ended.done() and each.ended.result().status == 0 for each in workers):
        return True
    reason = running.account.reason
    return role == "scheduler" and (not reason or reason.startswith("the scheduler: "))


def _first_accusation(processes: Sequence[Running]) -> tuple[str, list[str]]:
    """Returns the first reason that names anybody, and whom."""
    for each in processes:
        names = accused(each.account.reason)
        if names:
            return each.account.reason, names
    return "", []


def _is_guilty(running: Running, named: Sequence[str]) -> bool:
    if not running.ended.done() or running.ended.result().status == 0:
        return False
    name, reason = _name(running), running.account.reason
    if not reason:
        return running.ended.result().by_signal or not named or name in named
    names = accused(reason)
    return not names or name in names


def _name(running: Running) -> str:
    """The name by which the job's processes speak of this one."""
    rank = running.account.rank
    return running.process.name if rank is None else f"{running.process.role} {rank}"
