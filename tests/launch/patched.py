"""The launcher with other limits and breaks than a user's, which tests need not wait for."""

from __future__ import annotations

import sys

from .jobs import LAUNCH

_BY_PLACE = LAUNCH.parents[1] / "kvstore_ext" / "by_place.py"
# Between two starts of a job.
QUICK = "attempts._SHORTEST_BREAK = 0.1"
SLOW = "attempts._SHORTEST_BREAK = 4.0"
# For what does not answer, to end.
IMPATIENT = "direct.END_LIMIT = job.END_LIMIT = gathering.END_LIMIT = 2.0"


def launcher_with(*changes: str) -> list[str]:
    """A command as `kvstore-launch`, after assignments to names of the launcher's modules."""
    script = [
        "import runpy, sys",
        f"runpy.run_path({str(_BY_PLACE)!r})['_import_by_place']()",
        "from kvstore_ext.launcher import attempts, direct, gathering, job, main",
        *changes,
        "sys.exit(main.main(sys.argv[1:]))",
    ]
    return [sys.executable, "-c", "\n".join(script)]
