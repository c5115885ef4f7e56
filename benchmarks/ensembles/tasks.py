"""What networks are trained on, and for how long."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Sequence, Tuple

from ensembles.language_names import LANGUAGES, language_names
from ensembles.noisy_digits import noisy_digits
from ensembles.parts import Parts

BATCH = 16  # of a worker


@dataclass(frozen=True)
class Task:
    """A network with one hidden layer, and examples.

    Parameters
    ----------
    parts
        Of a seed.
    rate
        The learning rate to begin with.
    steps
        Mini-batches of a worker, those of compression included.
    kinds
        Whether workers have all of the examples, "shared", or 1/K each, "partitioned"; and K.
    """

    title: str
    parts: Callable[[int], Parts]
    classes: int
    hidden: int
    rate: float
    steps: int
    kinds: Sequence[Tuple[str, int]]


TASKS: Dict[str, Task] = {
    "digits": Task(
        "Digits, some with a wrong label", noisy_digits, 10, 32, 0.05, 2000,
        (("shared", 4), ("shared", 8), ("partitioned", 4), ("partitioned", 8))),
    "digits-long": Task(
        "The same digits, three times as long", noisy_digits, 10, 32, 0.05, 6000,
        (("shared", 4), ("shared", 8))),
    "names": Task(
        "Which language a name is in", language_names, len(LANGUAGES), 32, 0.03, 2000,
        (("shared", 4), ("shared", 8))),
}
