"""Many runs, arms in turn, into a file of one JSON line a run that a rerun goes on from."""
from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Dict, Iterator, List, Protocol, Sequence

from benchmarks.cluster import CONGESTION_CONTROL
from benchmarks.extra import packages
from benchmarks.replay import job
from benchmarks.replay.arms import ARMS
from benchmarks.replay.bound import least_seconds, wire_seconds
from benchmarks.replay.job import Settings
from benchmarks.replay.processes import Interpreters, JobError
from benchmarks.replay.trace import digest, load
from benchmarks.result_lines import append, read

with packages():
    from tqdm import tqdm

# Gbit/s that all hosts together send on average, here: two processors carry that with time to
# spare, so that links and not processors decide.
_CARRIED = 2.0
# Elements a second that all hosts together encode and add up on average, likewise.
_CODED = 35e6
# Slices a second that all hosts together send and get back, at most.
_SLICES = 33e3
# From so many hosts on a byte costs so much more: their links are slow here, and messages small.
_MANY, _MORE = 8, 1.6
# Where nothing is computed, encoding counts as communication, and how long it takes matters. So
# much slower for each host: with two processors, as though each host had twenty of them.
_ALONE = 10.0
# And so many seconds of a plain iteration for each host, since a small network costs processors by
# its keys and messages, and not by its bytes.
_LONG = 1.0
_STARTING = 6.0  # seconds until the first iteration, the initial weights not counted
_SLOWER = 1.25  # than the wire: what most arms take
_BAR = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}, about {left_over} left"


class ResultsError(Exception):
    """Results cannot be kept where they shall be."""


class Measurable(Protocol):
    """A run, as `measure` knows it. As text it is what a progress bar calls it."""

    @property
    def key(self) -> str:
        """What makes it the same run as another."""

    @property
    def expected(self) -> float:
        """Seconds that it takes here, about."""

    @property
    def fields(self) -> Dict[str, Any]:
        """What the line of its result begins with."""

    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""

    @property
    def limit(self) -> float:
        """Seconds after which it is given up."""

    def measure(self, interpreters: Interpreters, limit: float) -> Dict[str, Any]:
        """Runs for so many seconds at most; returns what its line ends with, `seconds` among it.
        Raises JobError."""


@dataclass(frozen=True)
class Run:
    """The replay of an arm under some settings, for the repeat-th time."""

    arm: str
    settings: Settings
    repeat: int

    @property
    def key(self) -> str:
        """What makes it the same run as another."""
        content = digest(self.settings.trace)  # a file of the same name may have another one
        version = ARMS[self.arm].version
        return json.dumps([self.arm, self.settings.described(), content, self.repeat, version])

    @property
    def expected(self) -> float:
        """Seconds that it takes here, about."""
        settings = self.settings
        trace = load(settings.trace)
        iterations: float = settings.warm_up + settings.iterations
        initial = wire_seconds(trace.elements, settings.hosts, settings.gigabits)
        share = ARMS[self.arm].share
        iteration = _SLOWER * share * initial
        if settings.computes:
            least = least_seconds(trace, settings.hosts, settings.gigabits / share)
            iteration = max(iteration, least)
        iteration, initial = (settings.dilation * each for each in (iteration, initial))
        if settings.slice_elements:
            handled = settings.hosts * trace.elements / settings.slice_elements / _SLICES
            iteration, initial = max(iteration, handled), max(initial, handled)
        models = ARMS[self.arm].models
        if models:
            iterations *= models.steps(settings.hosts)
        return _STARTING + iterations * iteration + initial

    @property
    def limit(self) -> float:
        """Seconds after which it is given up."""
        return 60 + 6 * self.expected

    @property
    def fields(self) -> Dict[str, Any]:
        """What the line of its result begins with."""
        return {"arm": self.arm, **self.settings.described(), "repeat": self.repeat}

    def slowed(self, factor: float) -> Run:
        """The same with a cluster that is so many times slower still."""
        slower = factor * self.settings.dilation
        return replace(self, settings=replace(self.settings, dilation=slower))

    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        return ARMS[self.arm].missing()

    def measure(self, interpreters: Interpreters, limit: float) -> Dict[str, Any]:
        """Runs; returns what it measured. Raises JobError."""
        return job.run(ARMS[self.arm], self.settings, interpreters, limit)

    def __str__(self) -> str:
        return f"{self.arm} at {self.settings.gigabits:g} Gbit/s"


def dilation(settings: Settings, arms: Sequence[str]) -> float:
    """The least by which this machine must be slower than the replayed cluster, for all arms."""
    loaded, hosts, gigabits = load(settings.trace), settings.hosts, settings.gigabits
    busy = wire_seconds(loaded.elements, hosts, gigabits)
    if not settings.computes:
        long = hosts * _LONG / busy if busy else 1.0
        return round(max(1.0, hosts * gigabits / _CARRIED, hosts * _ALONE, long), 1)
    average = hosts * gigabits * busy / least_seconds(loaded, hosts, gigabits)
    least = average / _CARRIED
    if any(ARMS[arm].compression for arm in arms):
        least = max(least, hosts * loaded.elements / loaded.compute / _CODED)
    return round(max(1.0, least * (_MORE if hosts >= _MANY else 1.0)), 1)


def plan(base: Settings, rates: Sequence[float], arms: Sequence[str], repeats: int) -> List[Run]:
    """All runs, in an order in which whatever changes on the machine meets all arms alike."""
    scaled = {rate: dilated(replace(base, gigabits=rate), arms) for rate in rates}
    return [
        Run(arm, scaled[rate], repeat)
        for repeat, rate, arm in product(range(repeats), rates, arms)
    ]


def dilated(settings: Settings, arms: Sequence[str]) -> Settings:
    """The same with the dilation that these arms need."""
    return replace(settings, dilation=dilation(settings, arms))


def interleaved(*plans: Sequence[Run]) -> List[Run]:
    """The runs of all plans, each first run before the second ones."""
    return sorted((run for plan in plans for run in plan), key=lambda run: run.repeat)


def lines_of(runs: Sequence[Measurable], file: Path) -> List[Dict[str, Any]]:
    """What a results file has of these runs."""
    keys = {run.key for run in runs}
    return [line for line in read(file) if line["key"] in keys]


def left(runs: Sequence[Measurable], file: Path) -> List[Measurable]:
    """Those that a results file does not have, or has as failed."""
    done = {line["key"] for line in lines_of(runs, file) if "seconds" in line}
    return [run for run in runs if run.key not in done]


def measure(runs: Sequence[Measurable], file: Path, seconds: float) -> Iterator[str]:
    """Does what the file does not have yet, and adds it; yields a line for each run that failed.

    Parameters
    ----------
    seconds : float
        No run begins that would not end within them, and one that takes longer is given up.

    Raises
    ------
    ResultsError
        Where the file cannot be written.
    """
    with _written_to(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a"):  # before hours are spent on what cannot be kept
            pass
    waiting = left(runs, file)
    latest = time.monotonic() + seconds
    total = sum(run.expected for run in waiting)
    with Interpreters() as interpreters, _Bar(total=total, bar_format=_BAR, delay=0.1) as bar:
        for number, run in enumerate(waiting):
            if time.monotonic() + run.expected > latest:
                yield f"time is up: {len(waiting) - number} runs are left; run it again to go on"
                return
            bar.set_description_str(str(run))
            left_over = latest - time.monotonic()
            yield from _one(run, file, interpreters, min(run.limit, left_over))
            bar.update(run.expected)


def _one(
    run: Measurable, file: Path, interpreters: Interpreters, limit: float
) -> Iterator[str]:
    missing = run.missing()
    if missing:
        yield missing
        return
    line: Dict[str, Any] = {
        "key": run.key, **run.fields,
        "processors": os.cpu_count(), "load": round(os.getloadavg()[0], 2),
        "began": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "commit": _commit(),
        "congestion_control": CONGESTION_CONTROL,
        "kernel": os.uname().release,  # TCP finds out what was lost in ways that change with it
    }
    begun = time.monotonic()
    try:
        line.update(run.measure(interpreters, limit))
    except JobError as error:
        if time.monotonic() - begun >= limit < run.limit:
            yield f"time is up: {run} was given up; run it again to go on"
            return
        line["failed"] = str(error)
        yield f"{run} failed: {error}"
    line["took"] = round(time.monotonic() - begun, 1)
    with _written_to(file):
        append(file, line)


@contextlib.contextmanager
def _written_to(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(f"results cannot be written to {file}: {error.strerror}") from error


def _commit() -> str:
    """That of the checkout, where it is one; with "+" where something has been changed since."""
    root, code = Path(__file__).parents[2], ["*.py", "*.cc", "*.h", "*.inc"]
    said = []
    for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "-uno", *code]):
        git = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True)
        said.append(git.stdout.strip())
    return said[0] + ("+" if said[1] else "")


class _Bar(tqdm):
    """A progress bar that counts seconds, and whose time left is what remains of them."""

    @property
    def format_dict(self) -> Dict[str, Any]:
        values = super().format_dict
        done, elapsed = values["n"], values["elapsed"]
        pace = elapsed / done if done else 1.0
        left_over = self.format_interval(pace * (values["total"] - done))
        return {**values, "left_over": left_over}
