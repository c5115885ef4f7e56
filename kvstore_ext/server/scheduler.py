"""The scheduler's process: MXNet's own scheduler, which hears of its job's failure and end."""
from __future__ import annotations

import ctypes
import time

from mxnet.base import _LIB, check_call

from .. import _core
from ..config import Job, Options, environment_options
from ..security.admission import why_without_key
from ..stock_store import cluster_stands, native_store
from .ending import ending_with_job
from .entering import enter


def main() -> None:
    """Runs the scheduler of the job that the environment names, with little of MXNet imported.

    Workers and servers check the options of methods, which this process does not know.
    """
    run_scheduler(*enter(environment_options()))


def run_scheduler(job: Job, options: Options) -> None:
    """Serves as the job's scheduler until all have left, or are gone."""
    stock = native_store("dist")
    scheduler = _core.Scheduler(
        _core.PsLiteTransport(
            role=_core.Role.SCHEDULER,
            peers=2 * max(job.workers, job.servers),
            copies=job.resending > 0,
        ),
        servers=job.servers,
        silence=options.silence,
        job=job.number,
    )
    no_commands = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
        lambda *_: None
    )
    # Later than those who have begun to wait a little later, and would find nobody here.
    latest = time.monotonic() + options.timeout + max(3.0, 0.1 * options.timeout)
    stands = False
    broken = ""

    def failure(seconds: float) -> str:
        nonlocal stands
        reason = broken or scheduler.await_failure(seconds)
        if reason or stands or time.monotonic() < latest:
            return reason
        stands = cluster_stands(stock)
        return "" if stands else not_all_have_come(job, options.timeout)

    def fail(reason: str) -> None:
        nonlocal broken
        broken = f"the scheduler: {reason}"

    with ending_with_job(failure, scheduler.over, scheduler.end_waits, fail, job.resending):
        check_call(_LIB.MXKVStoreRunServer(stock, no_commands, None))
    scheduler.stop()


def not_all_have_come(job: Job, timeout: float) -> str:
    """Says that processes have not come to the scheduler."""
    return why_without_key(job.scheduler) or (
        f"within {timeout:g} s not all of {job.workers} workers and {job.servers} servers have "
        f"come to the scheduler at {job.scheduler}"
    )
