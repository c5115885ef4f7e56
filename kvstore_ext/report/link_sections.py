"""The part of the page on links."""
from __future__ import annotations

from typing import List

from . import pictures, words
from .analysis import Analysis
from .causes import Cause
from .html import Markup, table, tag
from .section import Section, folded, more, note

_MOST_PICTURES = 8


def links_section(found: Analysis) -> Section:
    """What links carry, and which were waited for."""
    if not found.exchanges_known:
        return Section("links", "What links carry", "", [])
    links = found.links
    names = list(dict.fromkeys(end.name for end in links.hosts or links.processes))
    drawn = [pictures.traffic(found, name) for name in names]
    given = "what you say a link can carry" if links.given else "the fastest that bytes came"
    about = (
        "What each process sends, upwards, and receives, downwards, in Gbit/s and samples of 10 "
        "ms from the first step that counts on; lines are where steps of worker 0 begin. Counted "
        "are gradients and results, without headers. The most, below, is "
        f"{words.gigabits(links.gigabits)}: {given}."
    )
    if links.hosts:
        about += " Processes of one host share a link; what they send each other does not pass it."
    rows = [
        (end.name, end.way, words.gigabits(end.carried), words.per_cent(links.share(end)),
         words.per_cent(links.full(end)), words.per_cent(end.at_work),
         words.gigabits(end.under_way)) for end in (*links.hosts, *links.processes)
    ]  # fmt: skip
    heads = ("link of", "way", "in the mean", "of the most", "full", "has work", "under way")
    figures = tag("div", *drawn[:_MOST_PICTURES], class_="figures")
    rest = drawn[_MOST_PICTURES:]
    if rest:
        others = more(f"{len(rest)} more links", tag("div", *rest, class_="figures"))
        figures = Markup(figures + others)
    return Section("links", "What links carry", about, [
        figures, table(heads, rows, names=2),
        note("Full: samples with 80 % of the most or more. Has work: the share of the time in "
             "which something is on its way or queued for it. Under way: the rate while "
             "something is on its way."),
        *_waits_for_links(found),
    ])  # fmt: skip


def _waits_for_links(found: Analysis) -> List[Markup]:
    by_link = found.causes.by_link()
    rows = []
    for worker, server, way in sorted(by_link, key=lambda each: -by_link[each]):
        ends = [f"worker {worker}", f"server {server}"]
        ends = ends if way == Cause.PUSH else ends[::-1]
        seconds = by_link[worker, server, way]
        rows.append((" → ".join(ends), words.seconds(seconds / found.count),
                     words.per_cent(found.share_of_waiting(seconds))))  # fmt: skip
    if not rows:
        return []
    heads = ("link", "waits a step", "of all waiting")
    return [tag("h3", "Which links were waited for"), *folded(heads, rows)]
