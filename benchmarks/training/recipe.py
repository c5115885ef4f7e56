"""What is trained, how, and on what cluster."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict

from benchmarks.cluster import Link


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, by all arms alike.

    Parameters
    ----------
    task : str
        One of `job.TASKS`.
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
class Settings:
    """What a training depends on, beside the arm.

    Parameters
    ----------
    megabits : float
        Mbit/s of each host's link, each way; 0 is unlimited.
    seed : int
        From it follow the first weights, the order of examples and, of images, which ones test.
    """

    recipe: Recipe
    hosts: int
    megabits: float
    seed: int

    @property
    def link(self) -> Link:
        """Of each host."""
        return Link(send=self.megabits, receive=self.megabits)
