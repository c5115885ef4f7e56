"""The jobs of a soak: every store and compression in turn, and some while messages are lost."""
from __future__ import annotations

from dataclasses import dataclass

from kvstore_ext.compression.registry import TYPES

STORES = ("p3", *TYPES)
LOSSY_STORES = ("p3", "terngrad")
KEYS = 100  # of a step, each with one round
MARKS = 50  # of a leg: how often its processes are looked at
_LOSSY_MARKS = 5  # of a lossy leg, which is shorter: it mostly waits for what is sent again
# ps-lite draws by the clock's second: it loses all that arrives in a tenth of the seconds, and
# sends it again a second later.
LOSSY = {"PS_RESEND": "1", "PS_RESEND_TIMEOUT": "1000", "PS_DROP_MSG": "10"}


@dataclass(frozen=True)
class Leg:
    """A job that trains for so many steps; it is looked at after every `every` of them."""

    store: str
    steps: int
    every: int
    lossy: bool = False

    @property
    def name(self) -> str:
        return f"{self.store}, lossy" if self.lossy else self.store

    @property
    def rounds(self) -> int:
        return self.steps * KEYS


def legs(rounds: int) -> list[Leg]:
    """Those of about so many rounds, no fewer."""
    marks = len(STORES) * MARKS + len(LOSSY_STORES) * _LOSSY_MARKS
    every = -(-rounds // (marks * KEYS))
    return [
        *(Leg(store, MARKS * every, every) for store in STORES),
        # A lossy one's last mark is one of the whole leg of its store, and looked at more often.
        *(Leg(store, _LOSSY_MARKS * every, max(1, every // 10), True) for store in LOSSY_STORES),
    ]
