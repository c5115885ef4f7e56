"""Numbers as a reader sees them: with the digits that mean something, and a unit that fits."""
from __future__ import annotations

import math
from typing import Sequence

NOTHING = "\u2013"  # what is not known
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SECONDS = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs"))


def number(value: float) -> str:
    """Three digits: 1230, 123, 12.3, 1.23, 0.123."""
    if math.isnan(value):
        return NOTHING
    rounded = float(f"{value:.3g}")
    if rounded == 0:
        return "0"
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def per_cent(share: float) -> str:
    """Whole per cents; "under 1 %" for what is less and not nothing."""
    if math.isnan(share):
        return NOTHING
    if 0 < share < 0.005:
        return "under 1 %"
    return f"{100 * share:.0f} %"


def seconds(value: float) -> str:
    """In seconds, milliseconds or microseconds."""
    if math.isnan(value):
        return NOTHING
    for least, times, unit in _SECONDS:
        if abs(value) >= 0.9995 * least:
            return f"{number(value * times)} {unit}"
    return "0" if value == 0 else "under 1 µs"


def amount(count: float) -> str:
    """Of bytes."""
    if math.isnan(count):
        return NOTHING
    for least, unit in _BYTES:
        if abs(count) >= 0.9995 * least:
            return f"{number(count / least)} {unit}"
    return f"{count:.0f} bytes"


def gigabits(rate: float) -> str:
    """Gbit/s, or Mbit/s for less than one tenth."""
    if 0 < rate < 0.1:
        return f"{number(1000 * rate)} Mbit/s"
    return f"{number(rate)} Gbit/s"


def listed(names: Sequence[str], most: int = 3) -> str:
    """As in "a, b and c", or "a, b, c and 4 more"."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
