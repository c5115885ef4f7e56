"""What stands below tables."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, Sequence

from benchmarks.replay.processors import described

Lines = List[Dict[str, Any]]


def head(title: str, name: str, what: str) -> Iterator[str]:
    """The beginning of a page of numbers."""
    yield f"# {title}"
    yield ""
    yield f"{what} Made by `python -m benchmarks.figures {name}`."
    yield ""


def slower(lines: Lines) -> str:
    """By how much the cluster was slowed down, and how busy the machine still was."""
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
    return "; ".join([found, *(f"runs were {said}" for said in _loads(lines))])


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
    return ", ".join([found, *_commits(lines)])


def began(lines: Lines) -> str:
    """A sentence on what runs were made by, and when they began."""
    said = [*_commits(lines), *_loads(lines)]
    return f"Runs were {' and '.join(said)}." if said else ""


def _commits(lines: Lines) -> List[str]:
    """Those that runs were made at, where it was not one for all."""
    names = list(dict.fromkeys(line.get("commit", "one that was not kept") for line in lines))
    return [f"made at commits {', '.join(names)}"] if len(names) > 1 else []


def _loads(lines: Lines) -> List[str]:
    """How busy the machine was when runs began: of an idle one that is what the run before has
    left."""
    found = [line["load"] for line in lines if "load" in line]
    return [f"begun at loads of {min(found):g} to {max(found):g}"] if found else []
