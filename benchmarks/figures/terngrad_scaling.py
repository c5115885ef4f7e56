"""Throughput of 1 to 512 GPUs by TernGrad's performance model, and by events: its figure 5.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from gluon_models import get_model

from benchmarks.figures import captions, style
from benchmarks.figures.captions import Lines
from benchmarks.replay.costs import Device, layers_of
from benchmarks.replay.measurement import Measurable
from benchmarks.replay.trace import Trace
from benchmarks.simulations import terngrad_events
from benchmarks.simulations.terngrad_model import (
    Machines,
    bits_of_sum,
    communication,
    implied_compute,
    weak_scaling,
)

NAME = "terngrad-scaling"
GPUS = tuple(2**power for power in range(10))
_SAID = (1, 8, 64, 512)
_FLOAT, _TERNARY = 32, 2  # bits of an element
# Data sheets: PCIe 3.0 with 16 lanes, of which some 12 GB/s are reached, and a link of NVLink 1.0.
_PCIE, _NVLINK = 12e9, 20e9
_REACHED = 0.8  # as in the replays


@dataclass(frozen=True)
class Panel:
    """A cluster of the paper's figure, and what computes in it."""

    machines: Machines
    device: Device


PANELS = (
    Panel(
        Machines("GTX 1080, PCI switch, Ethernet of 1 Gbit/s", 4, _PCIE, _PCIE, 1e9 / 8, 50e-6),
        Device("GeForce GTX 1080", 8.9e12, 320e9, _REACHED),
    ),
    Panel(
        Machines("Tesla P100, NVLink, InfiniBand of 100 Gbit/s", 4, _NVLINK, _PCIE, 1e11 / 8, 2e-6),
        Device("Tesla P100 SXM2", 10.6e12, 732e9, _REACHED),
    ),
)


@dataclass(frozen=True)
class Model:
    """A network of the paper's figure, with its batch on a GPU."""

    name: str
    title: str
    batch: int
    like: str  # the arm whose line it has


MODELS = (
    Model("alexnet", "AlexNet", 128, "p3"),
    Model("googlenet", "GoogLeNet", 64, "qsgd"),
    Model("vgg11", "VggNet-A", 32, "onebit"),
)
# Of the paper: panel, model, GPUs, and how much faster TernGrad is.
_WORDS = ((0, "alexnet", 8, "3.04 times"), (1, "vgg11", 512, "about 2 times"))

@dataclass(frozen=True)
class Kind:
    """What travels: floats, or TernGrad's values."""

    name: str
    codec: str  # of the event model
    bits: float  # of the equations
    filled: bool  # its markers


KINDS = (Kind("floats", "", _FLOAT, False), Kind("TernGrad", "terngrad", _TERNARY, True))
_EQUATIONS, _EVENTS = ":", "-"  # lines

Networks = Dict[Tuple[int, str], Trace]  # by panel and model, with the times of one GPU
Simulated = Dict[Tuple[int, str, int, str], float]  # images/s, by GPUs and codec, too


def runs(quick: bool = False) -> List[Measurable]:
    """Nothing is measured."""
    return []


def draw(lines: Lines, directory: Path) -> None:
    """Writes terngrad-scaling.svg and terngrad-scaling.md."""
    networks = _networks()
    simulated = {
        (number, model.name, count, kind.codec): terngrad_events.throughput(
            panel.machines, count, networks[number, model.name], kind.codec
        )
        for number, panel in enumerate(PANELS)
        for model in MODELS
        for kind in KINDS
        for count in GPUS
    }
    _draw(networks, simulated, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(networks, simulated)) + "\n")


def _draw(networks: Networks, simulated: Simulated, file: Path) -> None:
    drawn, axes = style.figure(7.2, 3.9, 1, len(PANELS))
    for number, (place, panel) in enumerate(zip(axes, PANELS)):
        for model in MODELS:
            for kind in KINDS:
                how = _line(model, kind)
                values = [_throughput(networks, number, model, count, kind.bits) for count in GPUS]
                place.plot(GPUS, values, **{**how, "linestyle": _EQUATIONS})
                values = [simulated[number, model.name, count, kind.codec] for count in GPUS]
                place.plot(GPUS, values, **{**how, "linestyle": _EVENTS})
        place.set_xscale("log", base=2)
        place.set_yscale("log")
        place.set_xticks(_SAID, [str(count) for count in _SAID])
        place.set_title(f"({'ab'[number]}) {panel.machines.name}", loc="left", fontsize=8)
        place.set_xlabel("GPUs")
        place.grid()
    axes[0].set_ylabel("images/s")
    for model in MODELS:
        axes[0].plot([], [], label=model.title, **{**_line(model, KINDS[1]), "linestyle": ""})
    plain = {"color": "black", "marker": "o", "markersize": 5, "linewidth": 1.4}
    for kind in KINDS:
        fill = "black" if kind.filled else "white"
        axes[0].plot([], [], label=kind.name, markerfacecolor=fill, **{**plain, "linestyle": ""})
    for dashes, method in ((_EQUATIONS, "the paper's equations"), (_EVENTS, "event model")):
        axes[0].plot([], [], label=method, **{**plain, "marker": "", "linestyle": dashes})
    drawn.legend(loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    style.save(drawn, file)


def _line(model: Model, kind: Kind) -> Dict[str, Any]:
    how = style.line(model.like)
    return {**how, "markerfacecolor": how["color"] if kind.filled else "white"}


def _networks() -> Networks:
    found: Networks = {}
    for model in MODELS:
        for number, panel in enumerate(PANELS):
            shape = {"data": (model.batch, 3, 224, 224)}
            layers = layers_of(get_model(model.name), shape, panel.device)
            found[number, model.name] = Trace(
                model.title, model.batch, panel.device.name, "benchmarks.replay.costs", layers
            )
    return found


def _throughput(networks: Networks, panel: int, model: Model, gpus: int, bits: float) -> float:
    network, machines = networks[panel, model.name], PANELS[panel].machines
    return weak_scaling(machines, gpus, network.elements * bits / 8, model.batch, network.compute)


def _speedup(networks: Networks, panel: int, model: Model, gpus: int, bits: float) -> float:
    ternary = _throughput(networks, panel, model, gpus, bits)
    return ternary / _throughput(networks, panel, model, gpus, _FLOAT)


def _text(networks: Networks, simulated: Simulated) -> Iterator[str]:
    yield from captions.head(
        "Throughput against GPUs, by TernGrad's model and by events", NAME,
        "TernGrad's figure 5, by equations 29 and 30 of its appendix B and by the event model of "
        "`kvstore-ext predict`. Nothing is measured.",
    )
    yield (f"By the equations an element of a gradient is {_FLOAT} bits, and with TernGrad "
           f"{_TERNARY} on every way; `with sums' bits` has as many as an element of the sum "
           "needs, whichever way it goes: the paper's servers send sums of so many. By events a "
           "machine's GPUs add up floats and are one worker of `p3` or `terngrad`, on hosts with "
           f"{terngrad_events.PROCESSORS} processors.")
    words = {(panel, name, count): text for panel, name, count, text in _WORDS}
    for number, panel in enumerate(PANELS):
        yield from ["", f"## {panel.machines.name}", ""]
        yield ("| | GPUs | images/s, floats | images/s, TernGrad | times as fast | in the paper | "
               "with sums' bits | by events: floats | TernGrad | times as fast |")
        yield f"| --- |{' ---: |' * 9}"
        for model in MODELS:
            for count in (each for each in _SAID if each in GPUS):
                sums = max(_TERNARY, bits_of_sum(count))
                floats, ternary = (
                    simulated[number, model.name, count, kind.codec] for kind in KINDS
                )
                cells = [
                    model.title, str(count),
                    *(f"{_throughput(networks, number, model, count, kind.bits):.0f}"
                      for kind in KINDS),
                    f"{_speedup(networks, number, model, count, _TERNARY):.2f}",
                    words.get((number, model.name, count), ""),
                    f"{_speedup(networks, number, model, count, sums):.2f}",
                    f"{floats:.0f}", f"{ternary:.0f}", f"{ternary / floats:.2f}",
                ]
                yield f"| {' | '.join(cells)} |"
    yield ""
    yield _implied(networks)


def _implied(networks: Networks) -> str:
    """What the paper's 3.04 says of its computing."""
    (panel, name, gpus, _), speedup = _WORDS[0], 3.04
    model = next(each for each in MODELS if each.name == name)
    network = networks[panel, name]
    floats, ternary = (
        communication(PANELS[panel].machines, gpus, network.elements * bits / 8)
        for bits in (_FLOAT, _TERNARY)
    )
    needed = implied_compute(speedup, floats, ternary)
    compute = network.compute
    return (
        f"With these equations and {gpus} GPUs, {model.title} is {speedup} times as fast where a "
        f"GPU computes for {needed:.2f} s a step, {model.batch / needed:.0f} images a second. By "
        f"the data sheet of the {PANELS[panel].device.name} and {_REACHED:.0%} of it, it computes "
        f"for {compute:.3f} s, {model.batch / compute:.0f} images a second. The paper profiled "
        "TensorFlow of 2017, and does not give its time."
    )
