"""A part of a run: what it hands over for a snapshot, and takes back from one."""
from __future__ import annotations

from typing import Any, Container, Dict, List, Optional

import mxnet as mx

from ..errors import KVStoreError

# What must be alike in the run that goes on, by what it is; as a manifest has it.
About = Dict[str, str]


class SnapshotError(KVStoreError):
    """A snapshot is damaged, or another run's."""


class RefusedByRank0Error(SnapshotError):
    """Rank 0 has refused all snapshots: its text names that worker, which says why."""


class Part:
    """A part of a run. The script's thread calls it, between two steps.

    What `shared` and `own` return is written later, so nothing of it may change any more.
    """

    name = ""

    @property
    def steps(self) -> Optional[int]:
        """How many the run has behind it, where this part counts them and not the store, by its
        keys' pushes; None where it does not."""
        return None

    @property
    def gone(self) -> bool:
        """Whether what it is about is no more, so that it is left out."""
        return False

    def may_replace(self, other: Part) -> bool:
        """Whether it may take the place of another part of its name."""
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

    def missing(self, saved: About) -> List[str]:
        """Names of parts of its own that a snapshot has, and this run has not, or not yet."""
        return []

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


def name_apart(name: str, taken: Container[str]) -> str:
    """What to call a part of a kind of which there may be several: "Module", then "Module 2"."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name} {number}", number + 1
    return found
