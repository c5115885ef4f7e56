"""What a check says."""
from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, WRONG = "ok", "note", "wrong"


@dataclass(frozen=True)
class Finding:
    """What one check has found.

    `name` is what it looked at. `state` is OK, or NOTE for what a user should know and may leave as
    it is, or WRONG for what keeps a job from running well; then `remedy` says what to do.
    """

    name: str
    found: str
    state: str = OK
    remedy: str = ""


def note(name: str, found: str, remedy: str = "") -> Finding:
    """What a user should know, and may leave as it is."""
    return Finding(name, found, NOTE, remedy)


def wrong(name: str, found: str, remedy: str) -> Finding:
    """What keeps a job from running well."""
    return Finding(name, found, WRONG, remedy)
