"""What is trained, how, and on what cluster."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict

from benchmarks.cluster import Link


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, by all arms alike.

    Parameters
    ----------
    task : str
        One of `tasks.TASKS`.
    model : str
        A network of it.
    batch : int
        Examples a step, of all workers.
    evaluate_every : int
        Steps between two tests; after the last there is one as well.
    optimizer : str
        Any of MXNet's.
    rate : float
        Learning rate. It falls to 0 along a cosine.
    options : dict
        Of the optimizer, beside its learning rate.
    data_dir : str
        Where files of data sets lie that do not come with packages.
    """

    task: str
    model: str
    batch: int
    epochs: int
    evaluate_every: int
    optimizer: str
    rate: float
    options: Dict[str, Any] = field(default_factory=dict)
    data_dir: str = ""


@dataclass(frozen=True)
class EnsembleRecipe(Recipe):
    """How a worker trains a model of its own, by all methods that exchange models alike.

    Parameters
    ----------
    aggregations : dict
        By method, how often models meet in a training.
    p : float
        Mini-batches of each compression, in per cent of the whole training.
    shared : bool
        Whether every worker has all examples, or a part of them.
    """

    aggregations: Dict[str, int] = field(default_factory=dict)
    p: float = 10.0
    shared: bool = True

    def compression(self, method: str, mini_batches: int) -> int:
        """Mini-batches of each, in a training of so many."""
        return math.ceil(mini_batches * self.p / 100) if method.startswith("ec_dnn") else 0

    def tau(self, method: str, mini_batches: int) -> int:
        """Those between two aggregations, with which the training has so many."""
        length = mini_batches // self.aggregations[method]
        return length - self.compression(method, mini_batches)


@dataclass(frozen=True)
class Settings:
    """What a training depends on, beside the arm.

    Parameters
    ----------
    megabits : float
        Mbit/s of each host's link, each way; 0 is unlimited.
    seed : int
        From it follow the first weights, the order of examples and, of half_digits, which ones
        test.
    """

    recipe: Recipe
    hosts: int
    megabits: float
    seed: int

    @property
    def link(self) -> Link:
        """Of each host."""
        return Link(send=self.megabits, receive=self.megabits)
