"""The pictures of a report: bars of where time goes, and what links carry, sample by sample."""
from __future__ import annotations

from typing import Dict, Iterator, List, Sequence, Tuple

import numpy as np

from . import words
from .analysis import Analysis
from .causes import Cause
from .html import Markup, area, rectangle, tag
from .iteration import Iteration
from .links import SAMPLE, End, Links

CAUSES: Dict[Cause, Tuple[str, str]] = {
    Cause.GRADIENT: ("late", "another worker's gradient"),
    Cause.PREPARING: ("prepare", "looking at a gradient, and agreeing on its scaler"),
    Cause.ENCODING: ("encode", "copying from devices, and encoding"),
    Cause.PUSH: ("push", "the link to the server"),
    Cause.SERVER: ("server", "the server"),
    Cause.RESULT: ("result", "the link from the server"),
    Cause.WRITING: ("write", "decoding and writing"),
    Cause.UNSEEN: ("unseen", "what the trace does not tell"),
}
FORWARD, BACKWARD = ("forward", "forward pass"), ("backward", "backward pass")
EITHER = ("forward", "computing, or waiting that is not seen")

_BAR = 26  # pixels
_SAMPLES = 120
_MOST_SAMPLES = 5000
_TWO_STEPS = 2.2
_MOST_MARKS = 40
_TICKS = 4


def parts_of_step(found: Analysis, place: int) -> List[Tuple[str, str, float]]:
    """What a step of a worker consists of: kind, words and seconds, in the mean."""
    one = found.iterations[place]
    count = max(1, len(one.steps.numbers))
    mine = found.causes.waits["worker"] == found.job.workers[place].rank
    seconds = found.causes.seconds[mine].sum(axis=0) / count
    parts = [(*name, value) for name, value in _computing(one)]
    for cause in Cause:
        kind, what = CAUSES[cause]
        parts.append((kind, f"waiting for {what}", float(seconds[cause])))
    return [part for part in parts if part[2] > 0]


def _computing(one: Iteration) -> Iterator[Tuple[Tuple[str, str], float]]:
    if not one.layers_known:
        yield EITHER, float(np.mean(one.computing))
        return
    yield FORWARD, float(np.mean(one.forward))
    # What no layer accounts for is between two passes.
    yield BACKWARD, float(np.mean(one.computing - one.forward))


def bar(parts: Sequence[Tuple[str, str, float]], whole: float, label: str) -> Markup:
    """Parts side by side; `whole` is as wide as the page."""
    drawn, left = [], 0.0
    for kind, name, seconds in parts:
        width = 100 * seconds / whole if whole else 0.0
        drawn.append(rectangle(left, width, _BAR, kind, f"{name}: {words.seconds(seconds)}"))
        left += width
    return tag("svg", *drawn, width="100%", height=_BAR, role="img", aria_label=label, class_="bar")


def traffic(found: Analysis, name: str) -> Markup:
    """What a process or host sends, upwards, and receives, downwards."""
    links = found.links
    sent, received = _both(links, name)
    count = _shown(found)
    most = _highest(links, count)
    curves = tag(
        "svg",
        area(sent.rates[:count], most, "sent"),
        area(received.rates[:count], most, "received", down=True),
        view_box=f"0 -1 {count} 2",
        aspect="none",
        width="100%",
        height="100%",
    )
    marks = [
        tag("line", x1=f"{at:.2f}%", x2=f"{at:.2f}%", y1="0", y2="100%", class_="step")
        for at in _steps(found, count)
    ]
    axis = tag("line", x1="0", x2="100%", y1="50%", y2="50%", class_="axis")
    label = (
        f"{name} sends {words.gigabits(sent.carried)} and receives "
        f"{words.gigabits(received.carried)} in the mean"
    )
    picture = tag("svg", curves, *marks, axis, width="100%", height=110, role="img",
                  aria_label=label, class_="traffic")  # fmt: skip
    rate = f"{most:.3g}"
    sides = tag("div", tag("span", rate), tag("span", "0"), tag("span", rate), class_="sides")
    return tag(
        "figure",
        tag("figcaption", tag("b", name), f": {label[len(name) + 1 :]}"),
        tag("div", sides, tag("div", picture, _seconds(count), class_="curve"), class_="plot"),
    )


def _highest(links: Links, count: int) -> float:
    """The scale of all pictures, so that they can be compared."""
    ends = links.hosts or links.processes
    return max((float(end.rates[:count].max(initial=0)) for end in ends), default=0.0)


def _both(links: Links, name: str) -> Tuple[End, End]:
    ends = {end.sends: end for end in (*links.hosts, *links.processes) if end.name == name}
    return ends[True], ends[False]


def _shown(found: Analysis) -> int:
    """How many samples: of 1.2 s, or of two steps if they take longer, or of the whole trace."""
    steps = int(np.ceil(_TWO_STEPS * found.step * 1e9 / SAMPLE))
    recorded = max(len(end.rates) for end in found.links.processes)
    return max(1, min(max(steps, _SAMPLES), _MOST_SAMPLES, recorded))


def _steps(found: Analysis, count: int) -> Iterator[float]:
    """Where worker 0's steps begin, in per cent of the picture."""
    if not found.iterations:
        return
    first = found.iterations[0].steps
    places = 100 * (first.begins - found.links.begin) / (count * SAMPLE)
    spaced = places[(places >= 0) & (places < 100)]
    if len(spaced) <= _MOST_MARKS:
        yield from spaced.tolist()


def _seconds(count: int) -> Markup:
    whole = count * SAMPLE / 1e9
    at = [whole * tick / _TICKS for tick in range(_TICKS + 1)]
    labels = [f"{value:.3g}" for value in at]
    labels[-1] += " s"
    return tag("div", *(tag("span", label) for label in labels), class_="seconds")
