"""Many trainings, for benchmarks/replay/measurement.py."""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict

from benchmarks.replay.processes import Interpreters
from benchmarks.training import job
from benchmarks.training.arms import ARMS
from benchmarks.training.recipe import Settings

# Goes up with what changes a training's result, so that earlier results do not count any more. The
# second: links without BBR, and processes with the settings that their users' have.
_VERSION = 2


@dataclass(frozen=True)
class Run:
    """A training by an arm.

    Parameters
    ----------
    expected : float
        Seconds that it takes here, about.
    """

    arm: str
    settings: Settings
    expected: float

    @property
    def key(self) -> str:
        """What makes it the same run as another."""
        return json.dumps([self.arm, self._what, _VERSION])

    @property
    def repeat(self) -> int:
        """Those of one are made before those of the next."""
        return self.settings.seed

    @property
    def limit(self) -> float:
        """Seconds after which it is given up."""
        return 60 + 4 * self.expected

    @property
    def fields(self) -> Dict[str, Any]:
        """What the line of its result begins with."""
        return {"arm": self.arm, **self._what}

    @property
    def _what(self) -> Dict[str, Any]:
        """The settings but for where files lie, which changes nothing of what is trained."""
        recipe = replace(self.settings.recipe, data_dir="")
        return asdict(replace(self.settings, recipe=recipe))

    def short(self) -> Run:
        """The same with a single epoch: whether it works."""
        recipe = replace(self.settings.recipe, epochs=1)
        return replace(self, settings=replace(self.settings, recipe=recipe), expected=20)

    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        return ARMS[self.arm].missing()

    def measure(self, interpreters: Interpreters, limit: float) -> Dict[str, Any]:
        """Trains; returns what it came to. Raises JobError."""
        return job.run(self.arm, self.settings, interpreters, limit)

    def __str__(self) -> str:
        return f"{self.arm}, {self.settings.recipe.task}, seed {self.settings.seed}"
