"""A trainer's part of a run, for the snapshots of its store."""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Container, Dict

from ..copies import copied
from ..errors import KVStoreError
from ..snapshots.part import About, Part, SnapshotError, name_apart

if TYPE_CHECKING:
    from .trainer import Trainer


class TrainerRun(Part):
    """What a trainer has between two rounds; all of it is its worker's own.

    Parameters
    ----------
    trainer
        Its store has this part, so it is not kept alive.
    training
        What else than networks must be equal on all workers, and in the run that goes on.
    taken
        Names of parts that the store has already, of other trainers among them.
    """

    name = "ec_dnn"

    def __init__(self, trainer: Trainer, training: str, taken: Container[str]) -> None:
        self._reference = weakref.ref(trainer)
        self._training = training
        self.name = name_apart(type(self).name, taken)

    @property
    def _trainer(self) -> Trainer:
        trainer = self._reference()
        assert trainer is not None
        return trainer

    @property
    def gone(self) -> bool:
        return self._reference() is None

    @property
    def steps(self) -> int:
        return self._trainer.steps

    def about(self) -> About:
        models = self._trainer._models
        shapes = {f"parameter {place}": shape for place, shape in enumerate(models.shapes())}
        return {
            "ec_dnn": self._training,
            "an optimizer": self._trainer._learner.optimizer_name,
            "a number of workers": str(models.count),
            **shapes,
        }

    def own(self, rank: int) -> Dict[str, Any]:
        trainer = self._trainer
        if trainer._within_round:
            raise KVStoreError("ec_dnn: a snapshot is taken between two rounds, not within one")
        return {
            "examples": len(trainer._examples),
            "steps": trainer.steps,
            "round": trainer._round,
            "compressed": trainer._compressed,
            "model": copied(trainer._models.arrays()),
            "local": copied(trainer._local),
            "optimizer": trainer._learner.optimizer(),
            "order": trainer._order.left,
            "random": trainer._random.get_state(),
        }

    def put_back(self, shared: Any, own: Dict[str, Any], is_own: bool) -> None:
        trainer = self._trainer
        if own["examples"] != len(trainer._examples):
            raise SnapshotError(
                f"the snapshot's worker {trainer._models.rank} had {own['examples']} examples; "
                f"this run's has {len(trainer._examples)}"
            )
        trainer.steps, trainer._round = own["steps"], own["round"]
        trainer._compressed = own["compressed"]
        trainer._models.put(own["model"])
        if own["local"] is not None:
            context = trainer._learner.context
            trainer._local = [array.as_in_context(context) for array in own["local"]]
        trainer._learner.resume_optimizer(own["optimizer"])
        trainer._order.go_on(own["order"])
        trainer._random.set_state(own["random"])
