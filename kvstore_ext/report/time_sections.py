"""The parts of the page on what to do, and on where a step goes."""
from __future__ import annotations

from typing import List

import numpy as np

from . import pictures, words
from .advice import NONE, Advice, advise
from .analysis import Analysis
from .causes import Cause
from .html import Markup, table, tag
from .rules import RULES
from .section import Section, note


def advice_section(found: Analysis) -> Section:
    """What to do."""
    said = advise(found, RULES)
    items = [_item(advice) for advice in said]
    if not items:
        items = [tag("li", NONE)]
    return Section("advice", "What to do", "", [tag("ul", *items, class_="advice")])


def _item(advice: Advice) -> Markup:
    link = tag("a", "Shown below.", href=f"#{advice.section}")
    return tag("li", tag("b", advice.finding), " ", advice.remedy, " ", link)


def time_section(found: Analysis) -> Section:
    """Where a step goes."""
    about = (
        "A step lasts from the first gradient of a round to that of the next. In the mean over "
        "the steps that count, each worker spends it so. A wait is followed back from the result "
        "that ended it: each moment of it has one cause."
    )
    if not found.layers_known:
        about += (
            " The network's layers are not in the trace. So only the wait for the first layer is "
            "certain, and the most that it can be is the time from the last gradient to the last "
            "result."
        )
    counted = [one.steps.seconds for one in found.iterations if len(one.steps.numbers)]
    whole = max(float(np.mean(seconds)) for seconds in counted)
    drawn, rows, kinds = [], [], {}
    for place, worker in enumerate(found.job.workers):
        one = found.iterations[place]
        if not len(one.steps.numbers):
            continue
        parts = pictures.parts_of_step(found, place)
        kinds.update({name: kind for kind, name, _ in parts})
        step = float(np.mean(one.steps.seconds))
        label = f"{worker.name}: {words.seconds(step)} a step"
        caption = tag("figcaption", tag("b", worker.name), f": {words.seconds(step)} a step")
        drawn.append(tag("figure", caption, pictures.bar(parts, whole, label)))
        most = words.per_cent(one.share_at_most)
        waits = words.per_cent(one.share_waiting)
        waits = waits if one.layers_known else f"{waits} to {most}"
        overlap = words.per_cent(found.overlaps[place])
        rows.append((worker.name, words.seconds(step), words.seconds(float(np.mean(one.computing))),
                     waits, overlap if one.layers_known else f"at most {overlap}"))  # fmt: skip
    legend = tag("ul", *(tag("li", tag("i", class_=kind), name) for name, kind in kinds.items()),
                 class_="legend")  # fmt: skip
    heads = ("worker", "step", "computes", "waits", "overlap")
    return Section("time", "Where a step goes", about, [
        *drawn, legend, table(heads, rows),
        note("Overlap: the share of the time with an exchange under way in which the worker did "
             "not wait."),
        *_causes(found),
    ])  # fmt: skip


def _causes(found: Analysis) -> List[Markup]:
    total = found.causes.total
    if not total:
        return []
    by_cause = found.causes.by_cause()
    rows = [
        (pictures.CAUSES[cause][1], words.seconds(by_cause[cause] / found.count),
         words.per_cent(by_cause[cause] / total))
        for cause in Cause if by_cause[cause] > 0
    ]  # fmt: skip
    return [tag("h3", "What workers waited for"),
            table(("cause", "a step", "of all waiting"), rows)]  # fmt: skip
