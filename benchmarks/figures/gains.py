"""What a store gains over the baseline, what the bound allows, and where a peer is ahead."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List, Sequence

from benchmarks.figures.wire_time import shows
from benchmarks.replay.arms import ARMS
from benchmarks.replay.summary import BOUND, Found
from benchmarks.replay.trace import Trace

PEERS = ("dist_sync", "stock_p3", "horovod")


@dataclass(frozen=True)
class Gain:
    """Throughput over the baseline's, less one.

    Parameters
    ----------
    value : float
        Of the setting that was varied.
    gain : float
    allowed : float
        What the bound would have gained.
    """

    value: float
    gain: float
    allowed: float

    def reaches(self, paper: float) -> str:
        """Whether it is what a paper reports."""
        if self.gain >= paper:
            return "yes"
        return "no: the bound is nearer" if self.allowed < paper else "no"


def gains(found: Found, name: str, baseline: str = "dist_sync") -> List[Gain]:
    """Of an arm, wherever both were measured."""
    values = sorted(value for arm, value in found if arm == name and (baseline, value) in found)
    base = {value: found[baseline, value].median for value in values}
    return [
        Gain(value, found[name, value].median / base[value] - 1,
             found[BOUND, value].median / base[value] - 1)
        for value in values
    ]


def per_cent(share: float) -> str:
    """Whole, without a sign where it is rounded to 0."""
    return f"{round(100 * share)} %"


def behind(
    network: str, trace: Trace, found: Found, unit: str, hosts: int = 0, ours: str = "p3",
    peers: Sequence[str] = PEERS,
) -> Iterator[str]:
    """Lines of a table: each point of a network at which a peer is ahead, and by how much.

    Without `hosts` it is their number that was varied.
    """
    for value in sorted(value for arm, value in found if arm == ours):
        own, bound = found[ours, value].median, found[BOUND, value].median
        shown = "yes" if shows(trace, (hosts or value) * trace.batch / bound) else "no"
        for peer in peers:
            if (peer, value) not in found or found[peer, value].median <= own:
                continue
            more = found[peer, value].median / own - 1
            yield (f"| {network} | {value:,g} {unit} | {ARMS[peer].label} | {100 * more:.1f} % | "
                   f"{shown} | {per_cent(own / bound)} |")


def behind_table(rows: Sequence[str], ours: str = "p3") -> Iterator[str]:
    """The table of `behind`'s lines, or that there are none."""
    if not rows:
        yield f"No peer that was measured is ahead of `{ours}` at any point."
        return
    yield f"Where a peer is ahead of `{ours}`:"
    yield ""
    yield "| network | at | peer | ahead by | communication shows | ours, of float32's bound |"
    yield "| --- | ---: | --- | ---: | --- | ---: |"
    yield from rows
