"""Jobs that a benchmark starts, whose worker says in one line what it has measured."""
from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence, TypeVar

# Of a job of MXNet's own servers: importing mxnet there does all their work.
STOCK_SERVERS = ("--server-command", f"{sys.executable} -c 'import mxnet'")
# Of MXNet's P3, as MXNet's own launcher sets them with --p3.
STOCK_P3 = {"DMLC_PS_VAN_TYPE": "p3", "DMLC_PS_WATER_MARK": "10"}
Found = TypeVar("Found")  # by a job
Compared = TypeVar("Compared")  # an arm, by its name perhaps
LAUNCH = Path(__file__).resolve().parents[1] / "tools" / "launch.py"
_LIMIT = 900  # seconds that a job may take: some of MXNet's P3 never end
_ENDING = 60  # and the launcher, to end one


def measured(
    word: str,
    options: Sequence[str],
    worker: Sequence[str],
    python: str = sys.executable,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[float]:
    """Runs a job and returns the numbers that follow `word` in what its processes print.

    Exits, with all that was printed, unless the job ends well and says the word in one line.

    Parameters
    ----------
    options : of the launcher.
    worker : the script of a worker, and its arguments.
    python : the interpreter of all processes.
    variables : of all processes, beside those of this one that configure no store.
    """
    # So that the job is ended with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    script, *arguments = worker
    with tempfile.TemporaryDirectory() as logs:
        python = os.path.abspath(python)  # and not where a link leads, out of its environment
        launch = [python, str(LAUNCH), "--log-dir", logs, *options]
        launcher = subprocess.Popen(
            [*launch, python, str(Path(script).resolve()), *arguments],
            cwd=logs,  # a server would take the package of a checkout, and not its interpreter's
            env={**inherited(), "OMP_NUM_THREADS": "1", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            output, errors = launcher.communicate(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            told = "".join(_end(launcher))
            sys.exit(f"the job has not ended after {_LIMIT} s: {shlex.join(worker)}\n{told}")
        finally:
            if launcher.poll() is None:
                _end(launcher)
    lines = [line for line in output.splitlines() if f"{word} " in line]
    if launcher.returncode != 0 or len(lines) != 1:
        sys.exit(f"the job failed:\n{output}{errors}")
    return [float(number) for number in lines[0].partition(f"{word} ")[2].split()]


class Arm(NamedTuple):
    """A store that is compared, and what its jobs run.

    Attributes
    ----------
    name : of the store, or "the other" for p3 of another version.
    store : that a worker creates.
    server : options of the launcher.
    python : the interpreter of all processes.
    """

    name: str
    store: str
    server: tuple[str, ...]
    python: str


def arms(against: str | None) -> tuple[Arm, Arm]:
    """dist_sync, or p3 of the interpreter that takes its place, and p3."""
    stock = Arm("dist_sync", "dist_sync", STOCK_SERVERS, sys.executable)
    other = Arm("the other", "p3", (), against) if against else stock
    return other, Arm("p3", "p3", (), sys.executable)


def inherited() -> dict[str, str]:
    """This process's environment without what configures stores, so that all arms have the same."""
    configures = ("DMLC_", "PS_", "MXNET_", "KVSTORE_EXT_", "HOROVOD_", "OMP_")
    return {name: text for name, text in os.environ.items() if not name.startswith(configures)}


def _end(launcher: subprocess.Popen[str]) -> tuple[str, str]:
    """Has it end its job; returns what both have printed since."""
    launcher.terminate()
    try:
        return launcher.communicate(timeout=_ENDING)
    except subprocess.TimeoutExpired:
        launcher.kill()
        return launcher.communicate()


def in_turns(
    arms: Iterable[Compared], repeats: int, job: Callable[[Compared], Found]
) -> dict[Compared, list[Found]]:
    """What so many jobs of each arm have found; the first of all before the second ones, so that
    whatever changes on the machine meets all alike."""
    found: dict[Compared, list[Found]] = {arm: [] for arm in arms}
    for _ in range(repeats):
        for arm, jobs in found.items():
            jobs.append(job(arm))
    return found


def processor_seconds() -> float:
    """Of all processes of this job so far."""
    ticks = 0
    for process, _ in job_processes():
        with contextlib.suppress(OSError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def job_processes() -> Iterator[tuple[Path, list[bytes]]]:
    """Those of this job, which have the scheduler's port in common: their directories in /proc, and
    their environments."""
    mark = f"DMLC_PS_ROOT_PORT={os.environ['DMLC_PS_ROOT_PORT']}".encode()
    for process in sorted(Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if mark in variables:
                yield process, variables


def told(numbers: Sequence[float], what: str, decimals: int = 2) -> str:
    """The median, and each of them."""
    each = " ".join(f"{number:.{decimals}f}" for number in numbers)
    return f"{median(numbers):.{decimals}f} {what} ({each})"
