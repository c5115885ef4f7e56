"""A job's failure, in the words and with the status with which the launcher ends."""

from __future__ import annotations

import asyncio
import signal
from typing import Callable, Sequence

from .blame import find_culprit
from .hosts import Host
from .output import Sink
from .running import Running, stands

NO_STORE = (
    "no worker has opened a store of this job, so each has trained alone and the servers waited in "
    "vain: does the script create one, and is its name right (p3, dist_sync_p3, terngrad ...)?"
)
NO_STORE_YET = (
    "no worker has opened a store of this job in time: does the script load data before? Then "
    "raise the option timeout. If not, does it create a store, and is its name right?"
)
# Seconds in which a job ends after its first process, where that was told to end.
_ORDERLY_END = 10.0
_TOLD = "told to end by SIGTERM"  # all that a process says of itself which takes no snapshots


class JobError(Exception):
    """The job's first failure.

    `status` is what the launcher exits with, `sink` has the last lines of the process to blame,
    and `whose` says whose they are. `final`: another attempt is not wanted, or would end likewise.
    `missing`: a host lacks what is to run there, which is no longer final once it has run.
    `suspect` is a process that others miss, and that has not ended. `step` is the one after which a
    script has failed, 0 for a process that has failed before it came to its job; None where that is
    not known.
    """

    def __init__(
        self,
        text: str,
        status: int,
        sink: Sink | None = None,
        whose: str = "its last lines",
        *,
        final: bool = False,
        missing: bool = False,
        host: Host | None = None,
        suspect: Running | None = None,
        step: int | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.sink = sink
        self.whose = whose
        self.final = final
        self.missing = missing
        self._host = host
        self._suspect = suspect
        self.step = step

    @property
    def host(self) -> Host | None:
        """The host that is gone, if that is the failure: known once the job has ended. That of the
        suspect is, unless the suspect has ended by then, as it does on a host that is just slow."""
        suspect = self._suspect
        if suspect is None or (suspect.ended.done() and not suspect.ended.result().lost):
            return self._host
        return self._host or suspect.place


def say_failure(failure: JobError, say: Callable[[str], None]) -> None:
    """Says what has failed, with the last lines of who is to blame."""
    say(str(failure))
    lines = failure.sink.last_lines() if failure.sink else []
    if failure.sink and lines and failure.sink.is_on_screen:
        say(f"{failure.whose} are above (all are in {failure.sink.path})")
    elif failure.sink and lines:
        where = f"{failure.whose} (all are in {failure.sink.path}):"
        say("\n    ".join([where, *lines]))


async def explained(first: Running, processes: Sequence[Running], own_servers: bool) -> JobError:
    """Returns the failure of a job in which `first` was the first process to fail.

    That may take some seconds, in which the one to blame ends as well: see `find_culprit`.
    """
    told = [each.title for each in processes if each.account.told]
    if told:
        await asyncio.wait([each.ended for each in processes], timeout=_ORDERLY_END)
        who = f"{told[0]} was" if len(told) == 1 else f"{told[0]} and {len(told) - 1} more were"
        text, sink = ended(processes)
        text = f"{who} {_TOLD}; the job has ended{text}"
        return JobError(text, 128 + signal.SIGTERM, sink)
    culprit, reason = await find_culprit(first, processes)
    if not reason:
        ending = culprit.ended.result()
        text = f"{culprit.title} {ending.text}"
        waited = bool(culprit.account.reason) and culprit.process.role != "worker"
        in_vain = waited and no_store_was_opened(processes, own_servers)
        works = [each for each in processes if each.process.role == "worker"]
        runs = any(not each.ended.done() for each in works)
        return JobError(
            f"{text}: {NO_STORE_YET if runs else NO_STORE}" if in_vain else text,
            ending.status,
            culprit.sink,
            final=ending.final or in_vain,
            missing=ending.missing,
            host=culprit.place if ending.missing else _lost_host([culprit]),
            step=_last_step(culprit, processes, own_servers),
        )
    ending = first.ended.result()
    text = f"{first.title} {ending.text}: {reason}"
    host = _lost_host([culprit, first, *processes])
    if culprit.ended.done():
        return JobError(text, ending.status, first.sink, host=host)
    whose = f"the last lines of {culprit.process.name}"
    return JobError(text, ending.status, culprit.sink, whose, host=host, suspect=culprit)


def _lost_host(suspects: Sequence[Running]) -> Host | None:
    """Returns the host of the first of these whose connection has ended."""
    for each in suspects:
        if each.ended.done() and each.ended.result().lost:
            return each.place
    return None


def _last_step(
    culprit: Running, processes: Sequence[Running], own_servers: bool
) -> int | None:
    """Returns the step after which a worker's script has failed, 0 for a process that failed before
    it came to its job; None where it did not fail by itself."""
    ending = culprit.ended.result()
    if ending.lost or ending.missing or ending.by_signal:
        return None
    if own_servers and not culprit.account.joining:
        # Where the job has stood without a word of it, its reports do not arrive.
        return None if stands(processes) else 0
    return culprit.account.step


def ended(processes: Sequence[Running]) -> tuple[str, Sink | None]:
    """Returns how a job has ended that was told to, in words that go behind those, or nothing; and
    the sink of a process that was kept from its last snapshot."""
    snapshots = [f" {each.account.snapshot}" for each in processes if each.account.snapshot]
    if snapshots:
        return "".join(snapshots), None
    for each in processes:
        if each.account.latest_reason and not each.account.latest_reason.endswith(_TOLD):
            return f": {each.account.latest_reason}", each.sink
    return "", None


def no_store_was_opened(processes: Sequence[Running], own_servers: bool) -> bool:
    """Returns whether servers, of a kind that reports what they do, have heard of no store.

    `own_servers`: they are those of kvstore_ext, even where they have not come to say so.
    """
    accounts = [each.account for each in processes]
    workers = [each.account for each in processes if each.process.role == "worker"]
    reporting = own_servers or any(account.joining for account in accounts)
    return reporting and not stands(processes) and not any(account.joining for account in workers)
