"""What a script itself has of a run, beside what it trains."""
from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

from kvstore_ext.snapshots import Part

# What decides how far each step goes, and on which examples, as far as a script has it.
_OF_STEPS = ("optimizer", "lr", "lr_schedule", "lr_steps", "lr_factor", "lr_power",
             "warmup_epochs", "momentum", "wd", "clip_gradient", "batch_size", "seed")


class KeptFlags(Part):
    """A script's flags that must be alike in the run that goes on from a snapshot, which has the
    optimizer and its schedule."""

    name = "flags"

    def __init__(self, args: Any) -> None:
        ends_with_training = args.lr_schedule in ("cosine", "polynomial")
        names = [*_OF_STEPS, *(["epochs"] if ends_with_training else [])]
        self._flags = {name: getattr(args, name) for name in names if hasattr(args, name)}

    def about(self) -> dict[str, str]:
        """What a snapshot says of them."""
        return {f"--{name.replace('_', '-')}": str(self._flags[name]) for name in self._flags}


class KeptValues(SimpleNamespace, Part):
    """A script's values, by the names of attributes, of which the store's snapshots have each
    worker's."""

    name = "script"

    def own(self, rank: int) -> dict[str, Any]:
        """What a snapshot has of it."""
        return copy.deepcopy(vars(self))

    def put_back(self, shared: Any, own: dict[str, Any], is_own: bool) -> None:
        """Goes on from a snapshot."""
        vars(self).update(own)
