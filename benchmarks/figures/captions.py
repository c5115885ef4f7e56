"""What stands below tables."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, Sequence

from benchmarks.replay.processors import described

_SHORT = 7  # characters of a commit

Lines = List[Dict[str, Any]]


def head(title: str, name: str, what: str) -> Iterator[str]:
    """The beginning of a page of numbers."""
    yield f"# {title}"
    yield ""
    yield f"{what} Made by `python -m benchmarks.figures {name}`."
    yield ""


def slower(lines: Lines) -> str:
    """By how much the cluster was slowed down, how busy the machine still was, and at which loads
    runs began: of an idle machine that is what the run before has left."""
    dilations = sorted({line["dilation"] for line in lines})
    ends = f"{dilations[0]:g}"
    if len(dilations) > 1:
        ends += f" to {dilations[-1]:g}"
    found = f"everything, links and waits, was {ends} times slower than stated"
    busy = described(lines)
    if busy:
        known = sum("busy" in line for line in lines)
        of_which = "" if known == len(lines) else f" of {known} of {len(lines)} runs"
        found += f", and this machine's {busy}{of_which}"
    loads = [line["load"] for line in lines if "load" in line]
    return f"{found}; runs began at loads of {min(loads):g} to {max(loads):g}" if loads else found


def processors_a_host(line: Dict[str, Any]) -> float:
    """What a host of a run has of them when everything is slowed down."""
    return line.get("processors", 2) * line["dilation"] / line["hosts"]


def processors(lines: Lines) -> str:
    """What a host has of them when everything is slowed down."""
    counts = sorted({round(processors_a_host(line), 1) for line in lines})
    ends = f"{counts[0]:g}" + (f" to {counts[-1]:g}" if len(counts) > 1 else "")
    return f"as long as on hosts with {ends} processors each of this machine's kind"


def repeats(lines: Lines, settings: Sequence[str]) -> str:
    """How often everything was measured; `settings` are those that differ."""
    counts = Counter((line["arm"], *(line.get(name) for name in settings)) for line in lines)
    least, most = min(counts.values()), max(counts.values())
    runs = f"{least}" if least == most else f"{least} to {most}"
    found = "One run each" if most == 1 else f"Medians of {runs} runs, and their range"
    commits = list(dict.fromkeys(line["commit"][:_SHORT] for line in lines if "commit" in line))
    return f"{found}, made at commits {', '.join(commits)}" if len(commits) > 1 else found
