#!/usr/bin/env python3
r"""What was tried beyond the papers, beside what there was before: tables in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/beyond.py --results beyond.jsonl > benchmarks/beyond.md

Accuracies are of trainings whose workers and servers are simulated (simulations/); what overlaps is
measured in jobs on slow links (overlapping.py), which need root. The command can be ended and
called again at any time (trainings.py).
"""
from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Type, Union

import accuracy
import mxnet as mx
import numpy as np
from accuracy import BATCH, POWER, WEIGHT_DECAY, Found
from datasets import Dataset
from intervals import compared, interval
from kvstore_ext.compression import parse
from kvstore_ext.methods import SlimDP
from mxnet import gluon
from simulations.beyond import BlockMomentum, FeedbackRounds, NearestRounds
from simulations.gradients import CompressedRounds, Simulation
from simulations.slim_dp import GlobalModel, SlimSimulation
from trainings import command, complete, make_parser

_ROOT = str(Path(__file__).resolve().parents[1])
if _ROOT not in sys.path:  # of a script there are only the files beside it
    sys.path.append(_ROOT)

from benchmarks import overlapping  # noqa: E402

MOMENTUM, RATE = 0.9, 0.05  # as gluon_models/lenet.py has them for the digits
ADAM_RATE = 0.001
Q = 40  # steps from one core to the next
MOMENTS = {"after a third": 1 / 3, "at the end": 1.0}
OVERLAP = "EC-DNN overlaps"
ROUNDS = 13  # of it; the first is not counted
IDEAS = {
    "feedback": [
        "## TernGrad with error feedback",
        "",
        "What clipping and rounding leave of a gradient is added to the worker's next one. `to the",
        "nearest` clips as TernGrad does, and then rounds to the nearest of its three values.",
    ],
    "values": [
        "## Slim-DP's updates in few bits",
        "",
        "Updates travel to the servers as `values` says, in so many bits an element; parameters",
        "come back as floats.",
    ],
    "block": [
        "## Block momentum beside server_lr",
        "",
        "A server's step is eta times its last one, and server_lr times the mean update (Chen and",
        "Huo, ICASSP 2016); `ahead`: parameters are ahead by eta times the step. In the long run",
        "an update counts server_lr / (1 - eta) times. With p = 4 workers exchange after 4 steps.",
    ],
}
NOT_SHOWN = [
    "It does not show other networks, other data, other rates or longer trainings; nor, where an",
    "interval has zero in it, that there is no difference. Of as many comparisons as here some are",
    "told from zero by chance, about one in twenty.",
]


@dataclass(frozen=True)
class Arm:
    """A row of a table.

    Parameters
    ----------
    idea
        One of IDEAS.
    options
        Of the method; none for floats.
    less
        The arm that it is compared with; "" for none.
    rounds
        How keys travel in trainings without Slim-DP.
    block
        What BlockMomentum takes; none for servers that have no momentum.
    adam
        The optimizer is Adam.
    most
        Of the numbers of workers that are asked for, the largest that it is trained with.
    """

    idea: str
    options: Dict[str, Any] = field(default_factory=dict)
    less: str = ""
    rounds: Type[CompressedRounds] = CompressedRounds
    block: Dict[str, Any] = field(default_factory=dict)
    adam: bool = False
    most: int = 4


def terngrad(less: str, rounds: Type[CompressedRounds] = CompressedRounds, adam: bool = False,
             most: int = 4, **options: Any) -> Arm:
    return Arm("feedback", {"type": "terngrad", **options}, less, rounds, adam=adam, most=most)


def slim(idea: str, less: str = "", p: int = 1, most: int = 4, **options: Any) -> Arm:
    """With the shares that are its defaults, and a new core as often whatever p is."""
    block = {name: options.pop(name) for name in ("eta", "nesterov") if name in options}
    method = {"type": "slim_dp", "alpha": 0.3, "beta": 0.15, "p": p, "q": Q // p, **options}
    return Arm(idea, method, less, block=block, most=most)


ARMS: Dict[str, Arm] = {
    "floats": Arm("feedback", most=8),
    "terngrad": terngrad("floats", most=8),
    "terngrad, feedback": terngrad("terngrad", FeedbackRounds, most=8),
    "not clipped": terngrad("floats", clip_sigma=0),
    "not clipped, feedback": terngrad("not clipped", FeedbackRounds, clip_sigma=0),
    "to the nearest, feedback": terngrad("terngrad", NearestRounds),
    "Adam, floats": Arm("feedback", adam=True),
    "Adam, terngrad": terngrad("Adam, floats", adam=True),
    "Adam, feedback": terngrad("Adam, terngrad", FeedbackRounds, adam=True),
    "Adam, to the nearest, feedback": terngrad("Adam, terngrad", NearestRounds, adam=True),
    "slim_dp": slim("values", most=8),
    "values: qsgd": slim("values", "slim_dp", most=8, values="qsgd"),
    "values: qsgd, 4 bits": slim(
        "values", "slim_dp", values={"type": "qsgd", "bits": 4, "norm": "max"}),
    "p 4": slim("block", p=4, most=8),
    "p 4, server_lr 2": slim("block", "p 4", 4, server_lr=2),
    "p 4, eta 0.5": slim("block", "p 4", 4, eta=0.5),
    "p 4, eta 0.5, server_lr 0.5": slim("block", "p 4", 4, 8, eta=0.5, server_lr=0.5),
    "p 4, eta 0.75, server_lr 0.25": slim("block", "p 4", 4, eta=0.75, server_lr=0.25),
    "p 4, eta 0.5, server_lr 0.5, ahead": slim(
        "block", "p 4", 4, eta=0.5, server_lr=0.5, nesterov=True),
    "p 1, eta 0.5, server_lr 0.5": slim("block", "slim_dp", eta=0.5, server_lr=0.5),
}


@dataclass(frozen=True)
class Training:
    """The split, the first parameters, the order of the examples and all random numbers follow from
    the seed."""

    arm: str
    workers: int
    seed: int
    epochs: int

    def run(self) -> Dict[str, Any]:
        """Trains; returns percentages of test images that are recognised, by MOMENTS, and of
        Slim-DP with compressed values the bits of an element. A training that comes to gradients
        that are not finite ends there. Of OVERLAP returns seconds of `epochs` rounds."""
        if self.arm == OVERLAP:
            return overlapping.measure(self.workers, self.epochs)
        data = accuracy.split(self.seed)
        network = accuracy.make_network(data, self.seed)
        simulation = self._simulation(network, self.epochs * data.steps(BATCH))
        moments = {max(1, round(share * self.epochs)): name for name, share in MOMENTS.items()}
        found: Found = {}
        finite = True
        for epoch in range(1, self.epochs + 1):
            finite = finite and self._train(simulation, data, epoch)
            if epoch in moments:
                simulation.network.set_values(simulation.values())
                found[moments[epoch]] = accuracy.percentage(network, data.validation(BATCH))
        sent = simulation.values_sent if isinstance(simulation, SlimSimulation) else None
        return found if sent is None else {**found, "bits": 8 * sent.bytes / sent.elements}

    def _simulation(
        self, network: gluon.HybridBlock, iterations: int
    ) -> Union[Simulation, SlimSimulation]:
        """Where gradients are summed the rate is of all workers' batch, with Slim-DP of each."""
        arm = ARMS[self.arm]
        options = {"seed": self.seed, **arm.options}
        slim = options.get("type") == "slim_dp"
        batch = BATCH // self.workers if slim else BATCH
        optimizer = accuracy.make_optimizer(RATE, MOMENTUM, iterations, batch)
        if arm.adam:
            optimizer = mx.optimizer.Adam(**accuracy.schedule(ADAM_RATE, iterations, batch))
        if not slim:
            method = parse(options) if arm.options else None
            return Simulation(network, optimizer, self.workers, method, rounds=arm.rounds)
        method = parse(options)
        assert isinstance(method, SlimDP)
        model = partial(BlockMomentum, **arm.block) if arm.block else GlobalModel
        return SlimSimulation(network, optimizer, self.workers, method, self.workers, model=model)

    def _train(self, simulation: Union[Simulation, SlimSimulation], data: Dataset, epoch: int
               ) -> bool:
        """Whether gradients stay finite; the epoch ends where one does not."""
        try:
            for batches in accuracy.steps(data, self.workers, epoch):
                simulation.step(batches)
        except FloatingPointError:
            return False
        return True


def trainings(arguments: argparse.Namespace) -> Iterator[Training]:
    """All that the command asks for, seed by seed."""
    for seed in arguments.seeds:
        for workers in arguments.workers:
            for arm in arguments.methods:
                if arm != OVERLAP and workers <= ARMS[arm].most:
                    yield Training(arm, workers, seed, arguments.epochs)
    if OVERLAP in arguments.methods:
        yield Training(OVERLAP, min(arguments.workers), 0, ROUNDS)


class Tables:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Dict[Training, Any], arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments

    def lines(self) -> Iterator[str]:
        yield from configuration(self._arguments)
        for idea, about in IDEAS.items():
            asked = [arm for arm in self._arguments.methods
                     if arm != OVERLAP and ARMS[arm].idea == idea
                     and min(self._arguments.workers) <= ARMS[arm].most]
            if asked:
                yield from ("", *about, "")
                yield from self._table(asked)
                yield from self._differences(asked)
        yield from ("", *NOT_SHOWN)
        if OVERLAP in self._arguments.methods:
            yield from self._seconds()

    def _table(self, arms: List[str]) -> Iterator[str]:
        columns = [(count, name) for count in self._arguments.workers for name in MOMENTS]
        sent = {arm: self._of_seeds(arm, min(self._arguments.workers)).get("bits") for arm in arms}
        bits = any(found is not None for found in sent.values())
        yield ("| |" + "".join(f" K = {count}, {name} |" for count, name in columns)
               + " bits pushed |" * bits)
        yield "| --- |" + " ---: |" * (len(columns) + bits)
        for arm, found in sent.items():
            cells = [
                interval(self._of_seeds(arm, count)[name]) if count <= ARMS[arm].most else ""
                for count, name in columns
            ]
            cells += ["32" if found is None else f"{np.mean(found):.2f}"] * bits
            yield f"| {arm} | " + " | ".join(cells) + " |"

    def _differences(self, arms: List[str]) -> Iterator[str]:
        for other in dict.fromkeys(ARMS[arm].less for arm in arms):
            differences = {
                f"{arm}, K = {count}, {name}":
                    self._of_seeds(arm, count)[name] - self._of_seeds(other, count)[name]
                for arm in arms if ARMS[arm].less == other
                for count in self._arguments.workers if count <= ARMS[arm].most
                for name in MOMENTS
            } if other in self._arguments.methods else {}
            if differences:
                yield from ("", compared(f"Less `{other}`", differences))

    def _of_seeds(self, arm: str, workers: int) -> Dict[str, np.ndarray]:
        """Percentages, one a seed."""
        return accuracy.by_what(
            self._results[Training(arm, workers, seed, self._arguments.epochs)]
            for seed in self._arguments.seeds
        )

    def _seconds(self) -> Iterator[str]:
        workers = min(self._arguments.workers)
        found = self._results[Training(OVERLAP, workers, 0, ROUNDS)]
        at_once, after = (np.array(found[way]) for way in overlapping.WAYS)
        model = overlapping.FEATURES * overlapping.CLASSES * 4 / 1e6
        yield from (
            "", "## EC-DNN that asks for the next model while one labels", "",
            f"Jobs of {workers} workers, a round's seconds of exchange and relabelling, means of"
            f" {len(after)} rounds with 95 % intervals.",
            f"A model has {model:.0f} MB, links have {overlapping.MEGABITS} Mbit/s each way, and"
            f" labelling by a model takes {overlapping.LABELLING} s, a",
            "wait in the place of a device. Rounds of both kinds are made in turn in one job.", "",
            "| | seconds |", "| --- | ---: |",
            *(f"| {way} | {interval(np.array(found[way]))} |" for way in overlapping.WAYS), "",
            compared("Seconds more one after the other", {"a round": after - at_once}),
            "",
            f"It shows that {workers - 1} of {workers} models come while others label: at most"
            f" {(workers - 1) * overlapping.LABELLING} s a round can be saved so. It does",
            "not show a device that computes, or workers whose processors are busy with labelling.",
        )


def configuration(arguments: argparse.Namespace) -> List[str]:
    iterations = arguments.epochs * accuracy.split(0).steps(BATCH)
    return [
        "# Beyond the papers",
        "",
        f"Made by `{command('beyond.py')}`.",
        "",
        "What might improve on the papers' methods, beside what there was before: LeNet",
        "(gluon_models/lenet.py) on scikit-learn's handwritten digits, percentages of test images",
        "that are recognised after a third of the training and at its end, and differences in",
        "points with the same seed; means over the seeds, with 95 % intervals (t distribution).",
        "",
        accuracy.seeds_and_split(arguments.seeds),
        "  test, the first parameters, the order of the examples and all random numbers.",
        f"- {iterations} steps of SGD, {BATCH} images each, shared out to K workers; momentum"
        f" {MOMENTUM}, weight decay",
        f"  {WEIGHT_DECAY}, and a learning rate that falls from {RATE} to zero with the power"
        f" {POWER}. Adam's falls",
        f"  from {ADAM_RATE}.",
        f"- Slim-DP has the shares (0.3, 0.15), and a new core every {Q} steps.",
        "- Workers and servers are simulated in one process (benchmarks/simulations/).",
    ]


def main() -> None:
    parser = make_parser(__doc__, epochs=30, methods=[*ARMS, OVERLAP])
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 8])
    arguments = parser.parse_args()
    results = complete(arguments.results, Training, trainings(arguments))
    print(*Tables(results, arguments).lines(), sep="\n")


if __name__ == "__main__":
    main()
