"""Throughput of 1 to 512 GPUs by TernGrad's performance model: its figure 5.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from gluon_models import get_model

from benchmarks.figures import captions, style
from benchmarks.figures.captions import Lines
from benchmarks.replay.costs import Device, layers_of
from benchmarks.replay.measurement import Measurable
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

Sizes = Dict[Tuple[int, str], Tuple[float, int]]  # seconds of computing, and elements


def runs(quick: bool = False) -> List[Measurable]:
    """Nothing is measured."""
    return []


def draw(lines: Lines, directory: Path) -> None:
    """Writes terngrad-scaling.svg and terngrad-scaling.md."""
    sizes = _sizes()
    drawn, axes = style.figure(7.2, 3.6, 1, len(PANELS))
    for number, (place, panel) in enumerate(zip(axes, PANELS)):
        for model in MODELS:
            for bits, dashes in ((_FLOAT, ":"), (_TERNARY, "-")):
                how = {**style.line(model.like), "linestyle": dashes}
                kind = "floats" if bits == _FLOAT else "TernGrad"
                values = [_throughput(sizes, number, model, count, bits) for count in GPUS]
                place.plot(GPUS, values, label=f"{model.title}, {kind}", **how)
        place.set_xscale("log", base=2)
        place.set_yscale("log")
        place.set_xticks(_SAID, [str(count) for count in _SAID])
        place.set_title(f"({'ab'[number]}) {panel.machines.name}", loc="left", fontsize=8)
        place.set_xlabel("GPUs")
        place.grid()
    axes[0].set_ylabel("images/s")
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False,
                 fontsize="small")
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(sizes)) + "\n")


def _sizes() -> Sizes:
    sizes: Sizes = {}
    for model in MODELS:
        for number, panel in enumerate(PANELS):
            shape = {"data": (model.batch, 3, 224, 224)}
            layers = layers_of(get_model(model.name), shape, panel.device)
            seconds = sum(layer.forward + layer.backward for layer in layers)
            sizes[number, model.name] = seconds, sum(layer.elements for layer in layers)
    return sizes


def _throughput(sizes: Sizes, panel: int, model: Model, gpus: int, bits: float) -> float:
    compute, elements = sizes[panel, model.name]
    machines = PANELS[panel].machines
    return weak_scaling(machines, gpus, elements * bits / 8, model.batch, compute)


def _speedup(sizes: Sizes, panel: int, model: Model, gpus: int, bits: float) -> float:
    ternary = _throughput(sizes, panel, model, gpus, bits)
    return ternary / _throughput(sizes, panel, model, gpus, _FLOAT)


def _text(sizes: Sizes) -> Iterator[str]:
    yield from captions.head(
        "Throughput against GPUs, by TernGrad's model", NAME,
        "TernGrad's figure 5, by equations 29 and 30 of its appendix B. Nothing is measured.",
    )
    yield (f"An element of a gradient is {_FLOAT} bits, and with TernGrad {_TERNARY} on every way. "
           "The last column has as many as an element of the sum needs, whichever way it goes: "
           "the paper's servers send sums of so many.")
    words = {(panel, name, gpus): text for panel, name, gpus, text in _WORDS}
    for number, panel in enumerate(PANELS):
        yield from ["", f"## {panel.machines.name}", ""]
        yield ("| | GPUs | images/s, floats | images/s, TernGrad | times as fast | in the paper | "
               "with sums' bits |")
        yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
        for model in MODELS:
            for gpus in _SAID:
                cells = [
                    model.title, str(gpus),
                    *(f"{_throughput(sizes, number, model, gpus, bits):.0f}"
                      for bits in (_FLOAT, _TERNARY)),
                    f"{_speedup(sizes, number, model, gpus, _TERNARY):.2f}",
                    words.get((number, model.name, gpus), ""),
                    f"{_speedup(sizes, number, model, gpus, max(_TERNARY, bits_of_sum(gpus))):.2f}",
                ]
                yield f"| {' | '.join(cells)} |"
    yield ""
    yield _implied(sizes)


def _implied(sizes: Sizes) -> str:
    """What the paper's 3.04 says of its computing."""
    (panel, name, gpus, _), speedup = _WORDS[0], 3.04
    model = next(each for each in MODELS if each.name == name)
    compute, elements = sizes[panel, name]
    floats, ternary = (
        communication(PANELS[panel].machines, gpus, elements * bits / 8)
        for bits in (_FLOAT, _TERNARY)
    )
    needed = implied_compute(speedup, floats, ternary)
    return (
        f"With these equations and {gpus} GPUs, {model.title} is {speedup} times as fast where a "
        f"GPU computes for {needed:.2f} s a step, {model.batch / needed:.0f} images a second. By "
        f"the data sheet of the {PANELS[panel].device.name} and {_REACHED:.0%} of it, it computes "
        f"for {compute:.3f} s, {model.batch / compute:.0f} images a second. The paper profiled "
        "TensorFlow of 2017, and does not give its time."
    )
