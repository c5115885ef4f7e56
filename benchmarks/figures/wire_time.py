"""Where the time of p3's iterations goes, wherever communication shows."""
from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

from benchmarks.figures.captions import Lines
from benchmarks.replay.bound import least_seconds, wire_seconds
from benchmarks.replay.trace import FRAMES, Trace, load

_SHOWS = 1.01  # times as long as computing: the first layer's gradients show a little anywhere


def shows(trace: Trace, least: float) -> bool:
    """Whether communication does, where an iteration takes so many seconds by the bound."""
    return bool(least >= _SHOWS * trace.compute)


@dataclass(frozen=True)
class WireTime:
    """Parts of an iteration, in seconds.

    Parameters
    ----------
    all : float
        The iteration.
    gradients : float
        Of these: for gradients and sums on a host's link, one way, frames' headers counted.
    nothing : float
        In which there is nothing to send: what the bound has beside that.
    more : float
        For all else that is sent: messages' headers, credit, what TCP acknowledges.
    """

    all: float
    gradients: float
    nothing: float
    more: float

    @property
    def unused(self) -> float:
        """In which the link could have carried something: less than nothing where noise is more."""
        return self.all - self.gradients - self.nothing - self.more

    @classmethod
    def of(cls, runs: Lines) -> Optional[WireTime]:
        """Of runs of one arm that differ in nothing, in medians; None where computing alone takes
        as long as the bound."""
        line = runs[0]
        trace, hosts, gigabits = load(line["trace"]), line["hosts"], line["gigabits"]
        least = least_seconds(trace, hosts, gigabits)
        if not shows(trace, least):
            return None
        elements = sum(layer.elements for layer in trace.layers)
        gradients = wire_seconds(elements, hosts, gigabits)
        sent = median(run["sent"] for run in runs) * 8 * FRAMES / (gigabits * 1e9)
        seconds = median(run["seconds"] for run in runs)
        return cls(seconds, gradients, least - gradients, sent - gradients)


def table(panels: Sequence[Tuple[Any, Lines]]) -> Iterator[str]:
    """A row for each point of `p3` at which communication shows; a panel has a network's title, and
    stands with its lines."""
    yield ("Where the time of `p3`'s iterations goes, wherever the bound is more than 1 % above "
           "computing alone:")
    yield ""
    yield ("| network | Gbit/s | ms an iteration | gradients on the wire | nothing to send | "
           "all else that is sent | link not used |")
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for panel, own in panels:
        points: Dict[Any, Lines] = {}
        for line in own:
            if line["arm"] == "p3" and "seconds" in line:
                points.setdefault((line["hosts"], line["gigabits"]), []).append(line)
        for (hosts, gigabits), runs in sorted(points.items()):
            found = WireTime.of(runs)
            if found is not None:
                yield (f"| {panel.title}, {hosts} hosts | {gigabits:g} | {1000 * found.all:.1f} | "
                       f"{_share(found.gradients, found)} | {_share(found.nothing, found)} | "
                       f"{_share(found.more, found)} | {_share(found.unused, found)} |")


def _share(part: float, of: WireTime) -> str:
    return f"{100 * part / of.all:.1f} %"
