"""A part of a run: what it hands over for a snapshot, and takes back from one."""
from __future__ import annotations

from typing import Any, Dict

import mxnet as mx
import numpy as np

from ..errors import KVStoreError

# What must be alike in the run that goes on, by what it is; as a manifest has it.
About = Dict[str, str]


class SnapshotError(KVStoreError):
    """A snapshot is damaged, or another run's."""


class Part:
    """A part of a run. The script's thread calls it, between two steps.

    What `shared` and `own` return is written later, so nothing of it may change any more.
    """

    name = ""

    @property
    def gone(self) -> bool:
        """Whether what it is about is no more, so that it is left out."""
        return False

    def about(self) -> About:
        """What must be alike in the run that goes on."""
        return {}

    def prepare(self, saved: About) -> None:
        """Makes what it has to check and take back, where a script makes it later.

        Raises
        ------
        SnapshotError
            Where that cannot be, before anything is changed.
        """

    def check(self, saved: About) -> None:
        """Raises SnapshotError for a snapshot that says otherwise of what must be alike."""
        compare(saved, self.about())

    def shared(self) -> Any:
        """What all workers have alike; asked of rank 0 alone."""
        return None

    def own(self, rank: int) -> Any:
        """What this worker, of this rank, has by itself."""
        return None

    def at_hand(self) -> Dict[Any, mx.nd.NDArray]:
        """Values of the store's keys that it has in any case, and which need not be fetched."""
        return {}

    def put_back(self, shared: Any, own: Any, is_own: bool) -> None:
        """Goes on from what `shared` and `own` returned. Without `is_own`, the snapshot's job had
        no worker of this rank, and `own` is rank 0's."""


def compare(saved: About, found: About) -> None:
    """Raises SnapshotError with both values where they differ."""
    for name in [*saved, *(name for name in found if name not in saved)]:
        if saved.get(name) != found.get(name):
            raise SnapshotError(
                f"it has {name} {saved.get(name, 'not at all')}; this run has "
                f"{found.get(name, 'nothing of that name')}"
            )


def copied(value: Any) -> Any:
    """A copy that stays as it is; of MXNet's arrays, made in order with what computes them, in the
    host's memory."""
    if isinstance(value, mx.nd.NDArray):
        return value.copyto(mx.cpu())
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {name: copied(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [copied(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value
