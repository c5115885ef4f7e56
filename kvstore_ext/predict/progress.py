"""How far predictions have come: a bar on a terminal, lines in a log."""
from __future__ import annotations

import sys
import time
from typing import Iterable, Iterator, TypeVar

T = TypeVar("T")

LINES_EVERY = 10.0  # seconds


def say(text: str) -> None:
    """Tells what is going on, on standard error: what was found alone is on the other stream."""
    print(f"kvstore-ext predict: {text}", file=sys.stderr, flush=True)


def followed(cases: Iterable[T], count: int) -> Iterator[T]:
    """The cases, one by one, of which there are so many."""
    if sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            yield from tqdm(cases, total=count, unit="cases", leave=False, dynamic_ncols=True)
            return
    said = time.monotonic()
    for number, case in enumerate(cases, 1):
        yield case
        if time.monotonic() - said >= LINES_EVERY and number < count:
            said = time.monotonic()
            say(f"{number} of {count} cases")
