"""Whatever tests start ends with them, also when they are killed."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.paths import ROOT, python_path
from tests.support.processes import LIMIT

# As the tests: starts an interpreter, and one that forks, which needs no package for that.
START = """
import os
import signal
import sys
from pathlib import Path

from benchmarks.replay.forking import Interpreter
from tests.support import cluster

forking = Interpreter(sys.executable, ["signal"], {})
fork = forking.fork("signal:pause", [], None, {}, Path(os.devnull))
pause = ["-c", "import signal; signal.pause()"]
interpreter = cluster._interpreter(pause, dict(os.environ), Path.cwd(), None)
print(forking._process.pid, fork.pid, interpreter.pid, flush=True)
signal.pause()
"""


def lives(process: int) -> bool:
    """Whether there is one of this number that has not ended yet."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_tests(number: signal.Signals) -> None:
    environment = {"PYTHONPATH": python_path(), "PATH": ""}
    with subprocess.Popen(
        [sys.executable, "-c", START], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    ) as tests:
        assert tests.stdout is not None
        processes = [int(word) for word in tests.stdout.readline().split()]
        alive = [lives(process) for process in processes]
        tests.send_signal(number)
        latest = time.monotonic() + LIMIT
        while any(map(lives, processes)) and time.monotonic() < latest:
            time.sleep(0.05)
    left = [process for process in processes if lives(process)]
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert alive == [True] * 3
    assert left == []
