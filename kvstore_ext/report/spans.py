"""Spans of time: their union, what two have in common, and what lies in them."""
from __future__ import annotations

import numpy as np


def union(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The same time as spans that do not touch, in order.

    Parameters
    ----------
    begins, ends
        Shape (n,), any unit.

    Returns
    -------
    numpy.ndarray
        Shape (m, 2): beginnings and ends.
    """
    longer = ends > begins
    begins, ends = begins[longer], ends[longer]
    if not len(begins):
        return np.zeros((0, 2))
    order = np.argsort(begins, kind="stable")
    begins, reached = begins[order], np.maximum.accumulate(ends[order])
    first = np.append(True, begins[1:] > reached[:-1])
    last = np.append(first[1:], True)
    return np.column_stack((begins[first], reached[last]))


def until(spans: np.ndarray, times: np.ndarray) -> np.ndarray:
    """How much of spans that do not overlap lies before each of these times, shape of `times`."""
    if not len(spans):
        return np.zeros(np.shape(times))
    lengths = np.concatenate(([0], np.cumsum(spans[:, 1] - spans[:, 0])))
    whole = np.searchsorted(spans[:, 0], times, side="right")
    last = np.maximum(whole - 1, 0)
    inside = np.clip(times - spans[last, 0], 0, spans[last, 1] - spans[last, 0])
    return np.where(whole > 0, lengths[last] + inside, 0.0)


def common(spans: np.ndarray, others: np.ndarray) -> float:
    """The length that both have in common; neither has spans that overlap."""
    if not len(others):
        return 0.0
    return float(np.sum(until(spans, others[:, 1]) - until(spans, others[:, 0])))


def length(spans: np.ndarray) -> float:
    """Of spans that do not overlap."""
    return float(np.sum(spans[:, 1] - spans[:, 0])) if len(spans) else 0.0


def places_in(spans: np.ndarray, times: np.ndarray) -> np.ndarray:
    """In which of spans that do not overlap these times lie, its end included; -1 for none. Shape
    of `times`."""
    if not len(spans):
        return np.full(np.shape(times), -1)
    place = np.searchsorted(spans[:, 0], times, side="left") - 1
    inside = (place >= 0) & (times <= spans[np.maximum(place, 0), 1])
    return np.where(inside, place, -1)
