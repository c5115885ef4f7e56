"""The rules of advice, in the order in which a reader meets them."""
from __future__ import annotations

from typing import Tuple

from . import key_rules, link_rules, process_rules
from .advice import Rule

RULES: Tuple[Rule, ...] = (
    process_rules.nothing_to_gain,
    process_rules.straggler,
    link_rules.uneven_servers,
    link_rules.full_links,
    link_rules.half_used_links,
    process_rules.slow_servers,
    process_rules.taking_turns,
    key_rules.one_key,
    key_rules.late_pushes,
    key_rules.wrong_order,
    key_rules.costly_compression,
    process_rules.agreeing,
    process_rules.busy_processors,
    process_rules.unseen,
)
