"""All that a report says of a job, as numbers: what page.py draws and advice.py judges."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, List, Optional

import numpy as np

from ..trace.reading import JobTrace, ProcessTrace
from . import words
from .causes import Causes, causes_of
from .compression import MethodCost, costs_of
from .hosts import told_apart
from .iteration import WAIT, Iteration, iterations
from .layers import layers_of_keys, stem_of
from .links import Links, links_of
from .moments import Names
from .order import Order, order_of
from .overlap import overlap_of
from .spans import union
from .steps import Steps, all_steps, first_full, recorded_until
from .stragglers import ServerPace, WorkerPace, paces_of_servers, paces_of_workers


class NoStepError(ValueError):
    """A trace without a whole step."""


@dataclass(frozen=True)
class Analysis:
    """What a job's trace says.

    Attributes
    ----------
    job
        The trace, but for the processes that are `apart`; hosts of one name have got a number
        each.
    apart
        Names of processes whose clocks are not known beside the others': nothing counts them.
    full
        Name of the process that had no room for events before any other, "" where all had: steps
        that ended later do not count.
    iterations
        How each worker spent its steps, in the order of ranks.
    causes
        What their waits were for.
    links
        How much each link carried.
    overlaps
        Of each worker, the share of its communication that went on while it computed.
    workers, servers
        Their paces, in the order of ranks.
    order
        In which keys travel.
    methods
        What compression cost and saved.
    layers
        The layer of each key, by its identity, where that is known.
    """

    job: JobTrace
    apart: List[str]
    full: str
    iterations: List[Iteration]
    causes: Causes
    links: Links
    overlaps: List[float]
    workers: List[WorkerPace]
    servers: List[ServerPace]
    order: Order
    methods: List[MethodCost]
    layers: Dict[int, str]

    @property
    def count(self) -> int:
        """Steps of all workers together."""
        return sum(len(iteration.steps.numbers) for iteration in self.iterations)

    @property
    def step(self) -> float:
        """Seconds that a step takes, the mean over workers and steps."""
        return self._seconds / max(1, self.count)

    @property
    def share_waiting(self) -> float:
        """Of all workers' steps; the least where layers are not known."""
        return sum(float(one.waiting.sum()) for one in self.iterations) / self._seconds

    @property
    def share_at_most(self) -> float:
        """The most that it can be."""
        return sum(float(one.at_most.sum()) for one in self.iterations) / self._seconds

    @property
    def layers_known(self) -> bool:
        """Whether all workers' layers were recorded."""
        return all(one.layers_known for one in self.iterations)

    @property
    def exchanges_known(self) -> bool:
        """Whether any can be seen: from both ends, a worker's and a server's."""
        return bool(self.job.servers)

    @property
    def overlap(self) -> float:
        """The mean over workers that have exchanged anything in steps that count."""
        known = [share for share in self.overlaps if share == share]
        return float(np.mean(known)) if known else float("nan")

    @property
    def _seconds(self) -> float:
        return sum(float(one.steps.seconds.sum()) for one in self.iterations)

    def share_of_waiting(self, seconds: float) -> float:
        """Of all waits, how much these are."""
        return seconds / self.causes.total if self.causes.total else 0.0

    def key_name(self, key: int) -> str:
        """With its layer, where that is known and the name does not tell it: "3 (conv1)"."""
        layer = stem_of(self.layers.get(key, ""))
        name = self.job.name_of(key)
        return name if layer in name else f"{name} ({layer})"


def analyse(job: JobTrace, gigabits: Optional[float] = None) -> Analysis:
    """Analyses a trace.

    Parameters
    ----------
    job
        As `kvstore_ext.trace.reading.read` has it.
    gigabits
        What a link can carry each way, Gbit/s: a host's, where the job has several hosts, otherwise
        a process's. None takes the most that was seen.

    Raises
    ------
    NoStepError
        Where no worker has recorded a whole step, or none while all processes had room for events.
    """
    apart = [process.name for process in job.processes if np.isinf(process.clock.error)]
    left = [process for process in job.processes if process.name not in apart]
    job = replace(job, processes=told_apart(left))
    names = Names(job)
    full = first_full(job.processes)
    steps = _steps_that_count(job, full, apart)
    count = sum(len(own.numbers) for own in steps)
    spent = iterations(job, names, steps)
    waits = np.concatenate([one.waits for one in spent] or [np.zeros(0, WAIT)])
    causes = causes_of(job, names, waits)
    spans = [own.spans for own in steps if len(own.numbers)]
    counted = union(*np.concatenate(spans).T)
    return Analysis(
        job=job,
        apart=apart,
        full=full.name if full else "",
        iterations=spent,
        causes=causes,
        links=links_of(job, names, counted, gigabits),
        overlaps=[overlap_of(*both) for both in zip(job.workers, spent)],
        workers=paces_of_workers(job, names, spent, causes, count),
        servers=paces_of_servers(job, names, counted, causes, count),
        order=order_of(job),
        methods=costs_of(job, names, steps, counted),
        layers=layers_of_keys(job),
    )


def _steps_that_count(
    job: JobTrace, full: Optional[ProcessTrace], apart: List[str]
) -> List[Steps]:
    """Of each worker; what a full process left out would seem not to have happened, in later ones.

    Raises NoStepError where there is none.
    """
    steps = all_steps(job.workers, recorded_until(full) if full else None)
    if any(len(own.numbers) for own in steps):
        return steps
    if full:
        raise NoStepError(
            f"{full.name} had no room for events before any worker had ended a whole step: trace "
            "fewer steps, or set trace_events"
        )
    missed = f", without {words.listed(apart)}, whose clocks no ping connects with the others'"
    raise NoStepError(
        f"the trace has no whole step of any worker{missed if apart else ''}: a step ends with the "
        "first gradient of the next. Trace some more"
    )
