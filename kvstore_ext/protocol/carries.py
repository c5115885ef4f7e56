"""What a store adds to the states of its optimizer that a script saves."""
from __future__ import annotations

from typing import Any, Dict, Protocol

import mxnet as mx

# A key of no parameter, under which it lies among an optimizer's states; MXNet's own stores load
# such a file and leave the entry alone.
ENTRY = "kvstore_ext: carried over"

# In place of a rank in an entry: that of no worker, for one that begins with nothing of its own.
NOBODY = -1


class StatesEntry(Protocol):
    """What is saved among the states of an optimizer, under a key of its own."""

    def fetch(self, whole: bool = True) -> Dict[str, Any]:
        """An entry for a dictionary of states, or none; unless `whole`, without what the servers
        have, which is put back from rank 0's."""

    def put_back(self, states: Dict[Any, Any]) -> None:
        """Takes the entry out of the states and goes on from it."""


class Carries(StatesEntry, Protocol):
    """What a store adds to the states of its optimizer."""

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Hears of another optimizer, which was saved with the states, say."""
