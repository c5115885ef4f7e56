"""How a server's or the scheduler's process enters its job, and what it says where it cannot."""
from __future__ import annotations

import sys
from typing import Collection, Tuple

from ..config import Job, Options
from ..descriptors import make_room
from ..errors import KVStoreError, OptionError
from ..launch_reports import report
from ..security.admission import enter_job


def enter(others: Collection[str]) -> Tuple[Job, Options]:
    """The job and the options of every store; `others` are the names of further ones.

    Returns once the scheduler may be waited for. Exits with a line on standard error where the
    environment is wrong, or this process may not come.
    """
    try:
        job = Job.from_environment()
        options = Options.from_environment(others)
    except OptionError as error:
        sys.exit(f"kvstore_ext.server: {error}")
    if job is None or job.role == "worker":
        found = "not set" if job is None else "worker"
        sys.exit(f"kvstore_ext.server: DMLC_ROLE is {found}; it must be server or scheduler")
    report(joining=True)
    try:
        make_room(job)
        enter_job(job, options.timeout)
    except KVStoreError as error:
        report(failed=str(error))
        sys.exit(f"kvstore_ext.server: {error}")
    return job, options
