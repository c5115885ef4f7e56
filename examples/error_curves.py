"""A picture of errors over time, as SVG, which every browser shows."""
from __future__ import annotations

from pathlib import Path
from typing import Mapping, Sequence
from xml.sax.saxutils import escape

Points = Sequence["tuple[float, float]"]

_WIDTH, _HEIGHT, _MARGIN = 640, 400, 60
_COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#edae49", "#6a4c93")


def draw(file: Path, title: str, curves: Mapping[str, Points]) -> None:
    """Writes curves of (seconds, share of errors) by name."""
    times, errors = zip(*(point for points in curves.values() for point in points))
    most_time, most_error = max(times) or 1.0, max(errors) or 1.0

    def place(seconds: float, error: float) -> str:
        x = _MARGIN + seconds / most_time * (_WIDTH - 2 * _MARGIN)
        y = _HEIGHT - _MARGIN - error / most_error * (_HEIGHT - 2 * _MARGIN)
        return f"{x:.1f},{y:.1f}"

    parts = [_text(_WIDTH / 2, 24, title, "middle"),
             _text(_WIDTH / 2, _HEIGHT - 12, "seconds of training", "middle")]
    for quarter in range(5):
        error, seconds = most_error * quarter / 4, most_time * quarter / 4
        x, y = place(seconds, error).split(",")
        parts.append(f'<path d="M{place(0, error)} L{place(most_time, error)}" stroke="#ddd"/>')
        parts.append(_text(_MARGIN - 6, float(y) + 4, f"{100 * error:.1f} %", "end"))
        parts.append(_text(float(x), _HEIGHT - _MARGIN + 18, f"{seconds:.3g}", "middle"))
    for number, (name, points) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        line = " ".join(place(*point) for point in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(_WIDTH - _MARGIN, 50 + 18 * number, name, "end", colour))
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="sans-serif" font-size="13">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, words: str, anchor: str, colour: str = "black") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
            f"{escape(words)}</text>")
