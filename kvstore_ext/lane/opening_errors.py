"""What a worker says where its job does not come up, or has servers without a lane."""
from __future__ import annotations

from typing import List

from ..config import Job
from ..security.admission import why_unreachable, why_without_key


def incomplete(job: Job, timeout: float) -> str:
    """Where not all processes have come to the scheduler within so many seconds."""
    why = why_unreachable(job.scheduler, timeout) or why_without_key(job.scheduler)
    return why or (
        f"the scheduler at {job.scheduler} answers, but within {timeout:g} s not all of "
        f"{job.workers} workers and {job.servers} servers have come to it: look for a worker "
        "or a server that did not start or cannot reach that address"
    )


def unanswered(rank: int, missing: List[int], timeout: float) -> str:
    """Where servers of these ranks have not answered a worker's greeting; none of them where those
    of MXNet's own channel have not."""
    if not missing:
        return f"worker {rank}: MXNet's own servers have not answered a greeting"
    who = f"{_servers(missing)} {'has' if len(missing) == 1 else 'have'}"
    return f"worker {rank}: {who} not answered a greeting within {timeout:g} s"


def without_lane(missing: List[int]) -> str:
    """Where servers of these ranks are not this package's."""
    found = "of this job is not a P3Server"
    if len(missing) > 1:
        found = "of this job are not P3Servers"
    return (
        f"{_servers(missing)} {found}: start servers with kvstore-ext --serve, or the job with "
        "kvstore-launch"
    )


def _servers(ranks: List[int]) -> str:
    *others, last = map(str, ranks)
    return f"servers {', '.join(others)} and {last}" if others else f"server {last}"
