"""What a store adds to the states of its optimizer that a script saves."""
from __future__ import annotations

from typing import Any, Dict, Optional, Protocol

import mxnet as mx

from ..errors import KVStoreError
from ..version import __version__

# A key of no parameter, under which it lies among an optimizer's states; MXNet's own stores load
# such a file and leave the entry alone.
ENTRY = "kvstore_ext: carried over"

# Of what stands in it: another number wherever a version would read it otherwise.
FORMAT = 1

# In place of a rank in an entry: that of no worker, for one that begins with nothing of its own.
NOBODY = -1


def entry(**content: Any) -> Dict[str, Any]:
    """The entry for a dictionary of states."""
    return {ENTRY: {"format": FORMAT, "version": __version__, **content}}


def take_entry(states: Dict[Any, Any]) -> Optional[Dict[str, Any]]:
    """Takes the entry out of the states; None where there is none.

    Raises
    ------
    KVStoreError
        For one of another format.
    """
    found: Optional[Dict[str, Any]] = states.pop(ENTRY, None)
    if found is not None and found.get("format") != FORMAT:
        raise KVStoreError(
            f"the states have format {found.get('format', 0)}, of kvstore_ext "
            f"{found.get('version', 'before 0.1.0')}; this is kvstore_ext {__version__}, which "
            f"reads format {FORMAT}"
        )
    return found


class StatesEntry(Protocol):
    """What is saved among the states of an optimizer, under a key of its own."""

    def fetch(self, whole: bool = True) -> Dict[str, Any]:
        """An entry for a dictionary of states, or none; unless `whole`, without what the servers
        have, which is put back from rank 0's."""

    def put_back(self, states: Dict[Any, Any]) -> None:
        """Takes the entry out of the states and goes on from it."""


class Carries(StatesEntry, Protocol):
    """What a store adds to the states of its optimizer."""

    def check_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Raises KVStoreError for one that `adopt` would refuse; changes nothing."""

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Hears of another optimizer, which was saved with the states, say."""
