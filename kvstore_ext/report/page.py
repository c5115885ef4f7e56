"""The page: one file of HTML that needs neither a network nor a script."""
from __future__ import annotations

from pathlib import Path
from string import Template
from typing import List, Tuple

from . import words
from .analysis import Analysis
from .html import Markup, tag
from .section import Section
from .sections import sections

_TEMPLATE = Path(__file__).with_name("page.html")


def page(found: Analysis) -> str:
    """The whole file."""
    made = sections(found)
    menu = [tag("a", section.title, href=f"#{section.name}") for section in made]
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(
        about=tag("p", _about(found)),
        figures="".join(_figure(*one) for one in _figures(found)),
        menu="".join(menu),
        sections="".join(_drawn(section) for section in made),
    )


def _about(found: Analysis) -> str:
    workers, servers = len(found.job.workers), len(found.job.servers)
    numbers = [int(number) for one in found.iterations for number in one.steps.numbers]
    hosts = len({process.host for process in found.job.processes})
    places = f"{hosts} hosts" if hosts > 1 else "one host"
    return (
        f"{_counted(workers, 'worker')} and {_counted(servers, 'server')} on {places}, steps "
        f"{min(numbers)} to {max(numbers)}."
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _figures(found: Analysis) -> List[Tuple[str, str]]:
    """What stands in large letters: a number, and what it is."""
    waiting = words.per_cent(found.share_waiting)
    if not found.layers_known:
        waiting = f"{waiting} to {words.per_cent(found.share_at_most)}"
    busiest = max(
        found.links.hosts or found.links.processes, key=lambda end: end.at_work, default=None
    )
    figures = [(words.seconds(found.step), "a step"), (waiting, "of it waiting")]
    if found.overlap == found.overlap:
        overlap = words.per_cent(found.overlap)
        most = "" if found.layers_known else "at most "
        figures.append((f"{most}{overlap}", "of communication while computing"))
    if busiest is not None and found.exchanges_known:
        way = "to send" if busiest.sends else "to receive"
        share = words.per_cent(busiest.at_work)
        figures.append((share, f"of the time {busiest.name} has something {way}"))
    return figures


def _figure(number: str, what: str) -> Markup:
    return tag("div", tag("b", number), tag("span", what))


def _drawn(section: Section) -> Markup:
    about = [tag("p", section.about)] if section.about else []
    return tag("section", tag("h2", section.title), *about, *section.content, id=section.name)
