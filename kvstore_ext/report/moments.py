"""When each slice of a process was where: its events of one kind, to be looked up by name."""
from __future__ import annotations

from typing import Union

import numpy as np

from ..trace.events import WHOLE_KEY
from ..trace.reading import JobTrace

MISSING = np.iinfo(np.int64).min  # the time of what was not recorded
Numbers = Union[int, np.ndarray]


class Names:
    """One number for each key, slice, round and peer of a job, so that many are found at once."""

    def __init__(self, job: JobTrace) -> None:
        def largest(field: str) -> int:
            found = [process.events[field] for process in job.processes if len(process.events)]
            return max((int(values.max()) for values in found), default=0)

        keys = [process.events["key"][process.events["round"] > 0] for process in job.processes]
        self.keys = np.unique(np.concatenate([np.array(list(job.keys), "<u8"), *keys]))
        self._slices = largest("slice") + 2  # WHOLE_KEY is one more
        self._rounds = largest("round") + 1
        # Who is idle is nobody's peer.
        ranks = (process.rank for process in job.processes)
        self._peers = max(largest("peer"), *ranks, 0) + 2

    def of(
        self,
        key: Numbers,
        number: Numbers,
        slice_: Numbers = WHOLE_KEY,
        peer: Numbers = -1,
    ) -> np.ndarray:
        """The names of slices in rounds `number`; without a slice, of the key."""
        place = np.searchsorted(self.keys, np.asarray(key, "<u8")).astype(np.int64)
        name = place * self._slices + np.asarray(slice_, np.int64) + 1
        name = name * self._rounds + np.asarray(number, np.int64)
        return name * self._peers + np.asarray(peer, np.int64) + 1


class Moments:
    """Events of one kind, those of one name put together.

    Parameters
    ----------
    names
        The job's.
    events
        Records of `EVENT`; parts of a slice are several with one name.
    by_peer
        Whether those with different peers are different.
    by_slice
        Whether the slices of a key are different.

    Attributes
    ----------
    rows
        An event of each name, that which ended last, shape (n,).
    begins, ends
        Of each name the first beginning and the last end, nanoseconds, shape (n,).
    """

    def __init__(
        self, names: Names, events: np.ndarray, by_peer: bool = False, by_slice: bool = True
    ) -> None:
        slices = events["slice"] if by_slice else WHOLE_KEY
        peers = events["peer"] if by_peer else -1
        found = names.of(events["key"], events["round"], slices, peers)
        order = np.lexsort((events["end"], found))
        self._names, starts = np.unique(found[order], return_index=True)
        lasts = np.append(starts[1:], len(events)) - 1
        self.rows = events[order][lasts] if len(events) else events
        if len(events):
            self.begins = np.minimum.reduceat(events["begin"][order], starts)
            self.ends = self.rows["end"].astype(np.int64)
        else:
            self.begins = self.ends = np.zeros(0, np.int64)

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """Places of these names in the attributes; -1 for what was not recorded."""
        if not len(self._names):
            return np.full(np.shape(wanted), -1)
        place = np.minimum(np.searchsorted(self._names, wanted), len(self._names) - 1)
        return np.where(self._names[place] == wanted, place, -1)

    def begin(self, wanted: np.ndarray) -> np.ndarray:
        """Nanoseconds; MISSING for what was not recorded."""
        return self._at(self.begins, wanted)

    def end(self, wanted: np.ndarray) -> np.ndarray:
        """Nanoseconds; MISSING for what was not recorded."""
        return self._at(self.ends, wanted)

    def thread(self, wanted: np.ndarray) -> np.ndarray:
        """Numbers of the threads; MISSING for what was not recorded."""
        return self._at(self.rows["thread"].astype(np.int64), wanted)

    def _at(self, times: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        place = self.find(wanted)
        if not len(times):
            return np.full(np.shape(wanted), MISSING)
        return np.where(place < 0, MISSING, times[np.maximum(place, 0)])
