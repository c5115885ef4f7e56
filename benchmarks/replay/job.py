"""One run of the replay: an arm's job on a cluster of its own."""
from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import mean
from typing import Any, Dict

from benchmarks.cluster import Link
from benchmarks.replay import processes
from benchmarks.replay.arms import Arm
from benchmarks.replay.processes import Interpreters

_LATER = ("slice_elements", "sample", "computes")


@dataclass(frozen=True)
class Settings:
    """What a run's result depends on, beside the arm.

    Rates are those of the device that is replayed. Everything takes `dilation` times as long here,
    links and waits alike, so that two processors can carry the cluster.
    """

    trace: str
    hosts: int
    gigabits: float  # Gbit/s of each host's link, each way
    dilation: float
    warm_up: int = 2  # iterations that do not count
    iterations: int = 5
    by_name: bool = False  # keys are numbered by names, as gluon.Trainer does, not by layers
    slice_elements: int = 0  # most float32 of a slice; 0: the store's own
    sample: float = 0.0  # seconds from one sample of a host's traffic to the next; 0: none
    # False: layers take no time, and stores' weights are not updated: communication alone.
    computes: bool = True

    def described(self) -> Dict[str, Any]:
        """What tells it from others, in keys and result lines.

        What came later than results that are kept stands in it only where it is not the default, so
        that these remain results of the same runs.
        """
        return {
            name: value for name, value in asdict(self).items()
            if name not in _LATER or value != getattr(Settings, name)
        }

    @property
    def link(self) -> Link:
        """Of each host here."""
        megabits = self.gigabits * 1000 / self.dilation
        return Link(send=megabits, receive=megabits)


def run(arm: Arm, settings: Settings, interpreters: Interpreters, limit: float) -> Dict[str, Any]:
    """Runs an arm's job; returns what it measured, as on the replayed device.

    Parameters
    ----------
    limit : float
        Seconds that it may take here.

    Returns
    -------
    dict
        `seconds` an iteration, the mean of workers and iterations; `series`, those of worker 0,
        warm-up included; `sent` and `received`, bytes a host and iteration; all three a local step
        where models are exchanged; `busy`, the share of this machine's processors that computed
        meanwhile, whatever it was; `sent_again` and `timeouts` of all hosts' TCP in the iterations
        that count, as `segments.Segments` has them; with samples `traffic`, the first host's, as
        `traffic.Sampler.rates` has it.

    Raises
    ------
    JobError
        Naming who failed, with its last lines.
    """
    if settings.slice_elements:
        slices = {"slice_bytes": 4 * settings.slice_elements}
        arm = replace(arm, options={**arm.options, **slices})
    worker = "models_worker" if arm.models else "worker"
    found = processes.run(
        arm, settings.hosts, settings.link, f"benchmarks.replay.{worker}:work", asdict(settings),
        interpreters, limit,
    )

    def average(what: str) -> float:
        return mean(mean(worker[what][settings.warm_up:]) for worker in found)

    sampled = [worker["traffic"] for worker in found if worker["traffic"]]
    return {
        "seconds": average("seconds") / settings.dilation,
        "series": [round(each / settings.dilation, 4) for each in found[0]["seconds"]],
        "sent": round(average("sent")),
        "received": round(average("received")),
        "busy": found[0]["busy"],
        **{what: sum(worker[what] for worker in found) for what in ("sent_again", "timeouts")},
        **({"traffic": sampled[0]} if sampled else {}),
    }
