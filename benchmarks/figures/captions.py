"""What stands below tables."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, Sequence

from benchmarks.replay.processors import described
from benchmarks.replay.summary import BUSY

Lines = List[Dict[str, Any]]


def head(title: str, name: str, what: str) -> Iterator[str]:
    """The beginning of a page of numbers."""
    yield f"# {title}"
    yield ""
    yield f"{what} Made by `python -m benchmarks.figures {name}`."
    yield ""


def slower(lines: Lines) -> str:
    """By how much the cluster was slowed down, and how busy the machine still was."""
    ends = _range(sorted({line["dilation"] for line in lines}))
    found = f"everything, links and waits, was {ends} times slower than stated"
    busy = described(lines)
    if busy:
        known = sum("busy" in line for line in lines)
        of_which = "" if known == len(lines) else f" of {known} of {len(lines)} runs"
        found += f", and this machine's {busy}{of_which}"
    return "; ".join([found, *(f"runs were {said}" for said in _loads(lines))])


def processors(lines: Lines) -> str:
    """What hosts have of them together when everything is slowed down."""
    counts = sorted({line.get("processors", 2) for line in lines})
    times = sorted({line["dilation"] for line in lines})
    return f"{_range(counts)} processors, each {_range(times)} times as fast as this machine's"


def repeats(lines: Lines, settings: Sequence[str]) -> str:
    """How often everything was measured; `settings` are those that differ."""
    counts = Counter((line["arm"], *(line.get(name) for name in settings)) for line in lines)
    least, most = min(counts.values()), max(counts.values())
    runs = f"{least}" if least == most else f"{least} to {most}"
    found = "One run each" if most == 1 else f"Medians of {runs} runs, and their range"
    return ", ".join([found, *_commits(lines), *_failures(lines)])


def began(lines: Lines) -> str:
    """A sentence on what runs were made by, and when they began."""
    said = [*_commits(lines), *_loads(lines)]
    sentences = [f"Runs were {' and '.join(said)}."] if said else []
    return " ".join([*sentences, *(f"Of all, {each}." for each in _failures(lines))])


def _commits(lines: Lines) -> List[str]:
    """Those that runs were made at, where it was not one for all."""
    names = list(dict.fromkeys(line.get("commit", "one that was not kept") for line in lines))
    return [f"made at commits {', '.join(names)}"] if len(names) > 1 else []


def _failures(lines: Lines) -> List[str]:
    """How many failed before these."""
    count = sum(line.get("failures", 0) for line in lines)
    runs = "1 run failed and was" if count == 1 else f"{count} runs failed and were"
    return [f"{runs} made again"] if count else []


def _loads(lines: Lines) -> List[str]:
    """How busy the machine was when runs began: of an idle one that is what the run before has
    left."""
    found = [line["load"] for line in lines if "load" in line]
    if not found:
        return []
    busy = sum(line["load"] > BUSY * line["processors"] for line in lines if "load" in line)
    over = f", {busy} of {len(found)} above {BUSY:g} a processor" if busy else ""
    return [f"begun at loads of {min(found):g} to {max(found):g}{over}, the run before included"]


def _range(sizes: Sequence[float]) -> str:
    """Of sizes in order."""
    ends = [f"{size:g}" for size in dict.fromkeys((sizes[0], sizes[-1]))]
    return " to ".join(ends)
