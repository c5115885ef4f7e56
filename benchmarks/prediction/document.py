"""The document: a table of all settings, and what it says."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import median
from typing import Dict, List, Sequence

from kvstore_ext.predict.network import load
from kvstore_ext.predict.table import markdown

from benchmarks.prediction.compared import Compared, per_cent
from benchmarks.prediction.fitted import FITS
from benchmarks.prediction.leads import leads
from benchmarks.prediction.settings import Setting

GOAL_MEDIAN, GOAL_WORST, GOAL_SETTINGS = 0.05, 0.10, 60
_SHOWS = 0.02
_HEAD = ("setting", "measured, s", "range", "predicted, s", "difference")


def document(found: Sequence[Compared], left_out: Sequence[str], written: str) -> str:
    """All of it, as Markdown.

    Parameters
    ----------
    left_out : sequence of str
        Arms that are not predicted.
    written : str
        What stands below the summary: where predictions miss, and why.
    """
    counted = [each for each in found if each.counts]
    used = [each for each in found if not each.counts]
    lines = [
        "# Predicted and measured", "",
        "What [kvstore-ext predict](predict.md) says beside what the replay of "
        "[figures](figures.md) has measured. Made by `python -m benchmarks.prediction`, from "
        "`docs/figures/*.jsonl`; it measures nothing.", "",
        *_summary(counted), "", *_by_arm(counted), "", written.strip(), "",
        "## Who is ahead", "", *leads(found), "",
        "## Constants that were fitted", "", *_constants(), "",
        "## Settings that count", "", *_table(counted), "",
        "## Runs that constants were fitted to", "", *_table(used), "",
    ]  # fmt: skip
    if left_out:
        lines += [f"Not predicted: {', '.join(left_out)}.", ""]
    return "\n".join(lines)


def summary(found: Sequence[Compared]) -> str:
    """One line: how many settings, the median and the worst."""
    off = [abs(each.difference) for each in found]
    times = Counter(_apart_from_figure(each) for each in found)
    several = sum(each > 1 for each in times.values())
    again = f", {several} of them measured for several figures" if several else ""
    return (f"{len(times)} settings{again}: {100 * median(off):.1f} % off in the median, "
            f"{100 * max(off):.1f} % at worst, {sum(each > GOAL_WORST for each in off)} times "
            f"by more than {100 * GOAL_WORST:.0f} %")  # fmt: skip


def _apart_from_figure(each: Compared) -> Setting:
    """Its setting, whichever figure it was measured for."""
    return replace(each.measured.setting, source="")


def _shows(each: Compared) -> bool:
    """Whether an iteration took longer than computing alone does."""
    setting = each.measured.setting
    alone = load(setting.trace).compute if setting.computes else 0.0
    return each.measured.middle > (1 + _SHOWS) * alone


def _summary(counted: Sequence[Compared]) -> List[str]:
    own = {_apart_from_figure(each) for each in counted}
    shown = [abs(each.difference) for each in counted if _shows(each)]
    where = (
        f" Where communication shows, as an iteration takes {100 * _SHOWS:.0f} % longer or more "
        f"than computing alone, it is {100 * median(shown):.1f} % in the median of {len(shown)}."
    ) if shown else ""  # fmt: skip
    networks, hosts = {each.trace for each in own}, sorted({each.hosts for each in own})
    rates = sorted({each.gigabits for each in own})
    off = [abs(each.difference) for each in counted]
    reached = [len(own) >= GOAL_SETTINGS, median(off) <= GOAL_MEDIAN, max(off) <= GOAL_WORST]
    words = ["reached" if each else "not reached" for each in reached]
    found = "all of them measured"
    if len(networks) < 7 or not {2, 16} <= set(hosts):
        found = "not all of them measured yet"
    return [
        f"{summary(counted)}. They are of {len(networks)} networks, {', '.join(map(str, hosts))} "
        f"hosts, {rates[0]:g} to {rates[-1]:g} Gbit/s and {len({each.arm for each in own})} arms."
        f"{where}",
        "",
        f"The goal is {GOAL_SETTINGS} settings ({words[0]}), {100 * GOAL_MEDIAN:.0f} % in the "
        f"median ({words[1]}) and {100 * GOAL_WORST:.0f} % at worst ({words[2]}), of 7 networks "
        f"and 2 to 16 hosts ({found}).",
    ]  # fmt: skip


def _by_arm(counted: Sequence[Compared]) -> List[str]:
    arms: Dict[str, List[float]] = {}
    for each in counted:
        arms.setdefault(each.measured.setting.arm, []).append(each.difference)
    rows = []
    for arm, off in sorted(arms.items()):
        sizes = [abs(each) for each in off]
        rows.append((arm, str(len(off)), per_cent(median(off)), f"{100 * median(sizes):.1f} %",
                     f"{100 * max(sizes):.1f} %"))  # fmt: skip
    head = ("arm", "measured", "in the middle", "off in the median", "at worst")
    return markdown(head, rows)


def _constants() -> List[str]:
    rows = []
    for fit in FITS:
        settings = ", ".join(f"{name} {rate:g}" for name, rate in fit.settings)
        size = f", {fit.slice_elements} elements a slice" if fit.slice_elements else ""
        rows.append((f"`{fit.constant}`", fit.meaning, f"{fit.value:g}",
                     f"{' and '.join(fit.arms)}: {settings} Gbit/s, 4 hosts{size}"))  # fmt: skip
    return markdown(("constant", "what it is", "value", "runs"), rows)


def _table(found: Sequence[Compared]) -> List[str]:
    rows = []
    for each in sorted(found, key=lambda each: each.measured.setting.name):
        seconds = each.measured.seconds
        spread = f"{min(seconds):.4f} to {max(seconds):.4f}" if len(seconds) > 1 else ""
        rows.append((each.measured.setting.name, f"{each.measured.middle:.4f}", spread,
                     f"{each.predicted:.4f}", per_cent(each.difference)))  # fmt: skip
    return markdown(_HEAD, rows)
