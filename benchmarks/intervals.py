"""What tables say of numbers that seeds have: means, and whether differences are told from zero."""
from __future__ import annotations

import math
from typing import Dict, List

import numpy as np
from scipy import stats


def interval(values: np.ndarray, sign: str = "") -> str:
    """The mean, and half the length of its 95 % interval (t distribution)."""
    return f"{np.mean(values):{sign}.2f} ± {_half_interval(values):.2f}"


def _half_interval(values: np.ndarray) -> float:
    if len(values) < 2:
        return math.nan
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def shown(differences: Dict[str, np.ndarray]) -> str:
    """Which of some differences, an array of seeds each, their 95 % intervals tell from zero."""
    above: List[str] = []
    below: List[str] = []
    for name, values in differences.items():
        mean, half = float(np.mean(values)), _half_interval(values)
        if abs(mean) > half:
            (above if mean > 0 else below).append(name)
    told = [f"Above zero by its interval: {'; '.join(above)}."] * bool(above)
    told += [f"Below zero by its interval: {'; '.join(below)}."] * bool(below)
    if len(above) + len(below) < len(differences):
        told.append(f"Not told from zero: {'the others' if told else 'all'}.")
    return " ".join(told)


def compared(what: str, differences: Dict[str, np.ndarray]) -> str:
    """What one thing adds to another, an array of seeds in each case, and where that is told from
    zero."""
    found = "; ".join(f"{name} {interval(values, '+')}" for name, values in differences.items())
    return f"{what}: {found}. {shown(differences)}"
