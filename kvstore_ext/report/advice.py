"""What to do, in sentences that each have the figure that they rest on.

A rule is a function of the analysis that has something to say, or nothing. The rules look at what
was measured in this trace; none of them promises by how much a change would help.
"""
from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Tuple

from .analysis import Analysis

NONE = "No rule has anything to say: nothing stands out in this trace."
HELD_UP = 0.1  # of a step: who waits less has little to gain


class Advice(NamedTuple):
    """What one rule says.

    Attributes
    ----------
    finding
        What was seen, with its figure.
    remedy
        What to try.
    section
        The part of the page that shows it.
    """

    finding: str
    remedy: str
    section: str


Rule = Callable[[Analysis], Optional[Advice]]


def advise(found: Analysis, rules: Tuple[Rule, ...]) -> List[Advice]:
    """What the rules say, in their order."""
    said = (rule(found) for rule in rules)
    return [advice for advice in said if advice is not None]


def on_one_host(found: Analysis) -> bool:
    """Whether all processes share one host, so that none has a slower one than the others."""
    return len({process.host for process in found.job.processes}) == 1


def waits_enough(found: Analysis) -> bool:
    """Whether waiting is worth advice."""
    return found.share_waiting >= HELD_UP
