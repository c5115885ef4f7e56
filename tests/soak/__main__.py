"""Runs the legs of a soak that have not run yet, and says what came of each."""
from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.soak.legs import Leg, legs
from tests.soak.looking import Growth, growth
from tests.soak.running import faults, run, whole_of
from tests.support.paths import ROOT

_LOSSY_SLOWER = 20  # times, than a leg that loses nothing: a guess until a lossy one has run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000, help="of all legs")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--most", type=int, metavar="LEGS", help="that run now, others later")
    parser.add_argument("--only", nargs="+", metavar="LEG", help="the legs that run, by name")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "soak" / "looks.jsonl")
    arguments = parser.parse_args()
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    found = _found(arguments.results)
    wanted = legs(arguments.rounds)
    # Of earlier calls, those that do not run now included.
    known = {
        leg.name: found[_key(leg, arguments.workers)]
        for leg in wanted
        if _key(leg, arguments.workers) in found
    }
    if arguments.only:
        unknown = set(arguments.only) - {leg.name for leg in wanted}
        if unknown:
            names = ", ".join(f"'{leg.name}'" for leg in wanted)
            parser.error(f"no leg {', '.join(sorted(unknown))}; there are {names}")
        wanted = [leg for leg in wanted if leg.name in arguments.only]
    done = {leg.name: known[leg.name] for leg in wanted if leg.name in known}
    for result in done.values():
        print(_line(result, known))
    left = [leg for leg in wanted if leg.name not in done]
    for number, leg in enumerate(left[: arguments.most]):
        print(_prospect(left[number:], done), flush=True)
        done[leg.name] = known[leg.name] = run(leg, arguments.workers)
        with arguments.results.open("a") as file:
            file.write(json.dumps(done[leg.name]) + "\n")
        print(_line(done[leg.name], known), flush=True)
    return 1 if any(faults(result, known) for result in done.values()) else 0


def _key(leg: Leg, workers: int) -> tuple[str, int, int]:
    return leg.name, leg.rounds, workers


def _found(file: Path) -> dict[tuple[str, int, int], dict[str, Any]]:
    """The legs of earlier calls."""
    lines = file.read_text().splitlines() if file.exists() else []
    results = [json.loads(line) for line in lines]
    return {(each["leg"], each["rounds"], each["workers"]): each for each in results}


def _prospect(left: list[Leg], done: dict[str, dict[str, Any]]) -> str:
    """How long the rest will take, by what has been measured."""

    def rate(lossy: bool) -> float:
        those = [each for each in done.values() if ("lossy" in each["leg"]) is lossy]
        return sum(each["rounds"] for each in those) / (sum(each["seconds"] for each in those) or 1)

    whole = rate(False)
    lossy = rate(True) or whole / _LOSSY_SLOWER
    text = f"soak: {len(left)} legs to go"
    if not whole:
        return f"{text}; the first one will tell how long they take"
    seconds = sum(leg.rounds / (lossy if leg.lossy else whole) for leg in left)
    return f"{text}, some {seconds / 60:.0f} min at {whole:.0f} rounds/s"


def _line(result: dict[str, Any], known: dict[str, dict[str, Any]]) -> str:
    """What came of a leg: the steepest growth of each role, and what is wrong."""
    grown = {what: ", ".join(_steepest(result["looks"], what)) for what in ("heap", "memory")}
    rate = result["rounds"] / result["seconds"]
    sums = "the same sums"
    if whole_of(result) not in known:
        sums = f"sums that were not compared with those of '{whole_of(result)}', which has not run"
    wrong = "; ".join(faults(result, known)) or f"{sums}, as many descriptors and threads"
    return (
        f"{result['leg']}: {result['rounds']} rounds, {rate:.0f} a second; bytes that its live "
        f"heap grows by a round: {grown['heap']}; its memory: {grown['memory']}; {wrong}"
    )


def _steepest(looks: dict[str, Any], what: str) -> list[str]:
    """The steepest growth of each role."""
    found: dict[str, Growth] = {}
    for name, of_process in looks.items():
        role = name.split()[0]
        grown = growth(of_process, what)
        found[role] = max(found.get(role, grown), grown)
    return [f"{role} {grown}" for role, grown in found.items()]


if __name__ == "__main__":
    sys.exit(main())
