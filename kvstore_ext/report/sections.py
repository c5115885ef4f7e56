"""The parts of a report's page, in their order."""
from __future__ import annotations

from typing import Callable, List, Tuple

from .analysis import Analysis
from .key_sections import compression_section, layers_section, order_section
from .link_sections import links_section
from .process_sections import basis_section, servers_section, workers_section
from .section import Section
from .time_sections import advice_section, time_section

_SECTIONS: Tuple[Callable[[Analysis], Section], ...] = (
    advice_section,
    time_section,
    layers_section,
    links_section,
    workers_section,
    servers_section,
    order_section,
    compression_section,
    basis_section,
)


def sections(found: Analysis) -> List[Section]:
    """All that have something to show."""
    made = [make(found) for make in _SECTIONS]
    return [section for section in made if section.content]
