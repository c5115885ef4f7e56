"""What compression carries over from round to round: part of the states that a script saves."""
from __future__ import annotations

import pickle
from typing import Any, Dict, List, Mapping, Protocol

import mxnet as mx
import numpy as np

from . import _core
from .arrays import KeyArrays
from .compressed_keys import CompressedKeys
from .errors import KVStoreError
from .keys import Key
from .questions import answer_to, ask

# A key of no parameter, under which it lies among an optimizer's states; MXNet's own stores load
# such a file and leave the entry alone.
ENTRY = "kvstore_ext: carried over"


class Carries(Protocol):
    """What a store adds to the states of its optimizer."""

    def compressed(self) -> List[Key]:
        """The keys that it is about."""

    def fetch(self) -> Dict[str, Any]:
        """An entry for a dictionary of states, or none."""

    def put_back(self, states: Dict[Any, Any]) -> None:
        """Takes the entry out of the states and goes on from it."""

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Hears of another optimizer, which was saved with the states, say."""


class Carried:
    """What a store's compressed keys carry over, here and on the servers.

    A worker carries over what its own encodings left out, so each worker saves and loads a file of
    its own for a run that goes on with the same bits. One that loads another worker's file, or a
    file without, begins with nothing.
    """

    def __init__(
        self,
        worker: _core.Worker,
        keys: Mapping[Key, KeyArrays],
        compressed: CompressedKeys,
        rank: int,
    ) -> None:
        self._worker = worker
        self._keys = keys
        self._compressed = compressed
        self._rank = rank

    def compressed(self) -> List[Key]:
        """The keys that are compressed."""
        return [name for name, key in self._keys.items() if key.compressed]

    def of_worker(self, name: Key) -> np.ndarray:
        """What this worker carries over for a compressed key, float32: nothing before the first
        round, and with dgc the accumulated gradient, then its momentum."""
        mx.nd.waitall()  # no round is under way then
        return self._keys[name].codec.state()

    def fetch(self) -> Dict[str, Any]:
        """An entry for a dictionary of states; none where nothing is compressed."""
        compressed = {name: self._keys[name] for name in self.compressed()}
        if not compressed:
            return {}
        mx.nd.waitall()
        here = {
            name: (key.codec.rounds(), key.codec.state()) for name, key in compressed.items()
        }
        there = {name: self._on_servers(key) for name, key in compressed.items()}
        method = repr(self._compressed.method)
        return {ENTRY: {"method": method, "rank": self._rank, "worker": here, "servers": there}}

    def put_back(self, states: Dict[Any, Any]) -> None:
        """Takes the entry out of the states and goes on from it.

        Raises
        ------
        KVStoreError
            For what another compression, or one with other options, has carried over.
        """
        entry = states.pop(ENTRY, None)
        method = repr(self._compressed.method)
        if entry is not None and entry["method"] != method:
            raise KVStoreError(
                f"the states were saved with compression {entry['method']}; the store has {method}"
            )
        mx.nd.waitall()
        nothing = (0, np.zeros(0, np.float32))
        for name in self.compressed():
            drawn, state = nothing if entry is None else entry["worker"].get(name, nothing)
            own = entry is not None and entry["rank"] == self._rank
            self._keys[name].codec.set_state(drawn, state if own else nothing[1])
            if self._rank == 0:
                whole = nothing[1] if entry is None else entry["servers"].get(name, nothing[1])
                self._put_on_servers(self._keys[name], drawn, whole)

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Tells the compression of another optimizer, which was saved with the states, say."""
        self._compressed.adopt(optimizer)

    def _on_servers(self, key: KeyArrays) -> np.ndarray:
        """Of the whole key; empty where servers carry nothing over."""
        slices = self._worker.slices(key.identity)
        questions = [
            ask(self._worker, server, {"carried": [key.identity, index]})
            for index, _, _, server in slices
        ]
        parts = [answer_to(self._worker, question)[1] for question in questions]
        return np.frombuffer(b"".join(parts), np.float32)

    def _put_on_servers(self, key: KeyArrays, drawn: int, whole: np.ndarray) -> None:
        questions: List[int] = []
        for index, begin, length, server in self._worker.slices(key.identity):
            part = whole[begin : begin + length]
            what = {"carried": [key.identity, index], "drawn": drawn}
            questions.append(ask(self._worker, server, what, part.tobytes()))
        for question in questions:
            answer_to(self._worker, question)


class CarryingUpdater(mx.optimizer.Updater):
    """A worker's own updater, whose saved states have what compression carries over as well."""

    def __init__(self, optimizer: mx.optimizer.Optimizer, carried: Carries) -> None:
        super().__init__(optimizer)
        self._carried = carried

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """As MXNet's."""
        states = {**self.states, **self._carried.fetch()}
        return pickle.dumps((states, self.optimizer) if dump_optimizer else states)

    def set_states(self, states: bytes) -> None:
        """As MXNet's; raises KVStoreError for what another compression has carried over."""
        loaded = pickle.loads(states)
        self._carried.put_back(loaded[0] if isinstance(loaded, tuple) else loaded)
        super().set_states(pickle.dumps(loaded))
        self._carried.adopt(self.optimizer)
