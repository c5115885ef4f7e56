"""What several promises have come to in one job: workers try each of them and say so."""
from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from tests.support.cluster import Job


def attempt(promise: str, check: Callable[..., None], *arguments: Any) -> None:
    """On a worker: says whether the check has passed, and goes on either way."""
    try:
        check(*arguments)
    except Exception:
        print(f"failed {promise}\n{traceback.format_exc()}")
    else:
        print(f"passed {promise}")


def assert_kept(job: Job, promise: str) -> None:
    """In a test: fails unless the check has passed on every worker."""
    for worker in job.workers:
        assert f"passed {promise}\n" in worker.output, f"see what {worker.name} wrote"
