"""What compression carries over from round to round: part of the states that a script saves."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

import numpy as np

from .. import _core
from ..config import Options
from ..errors import KVStoreError
from ..keys.key_arrays import KeyArrays
from ..keys.names import Key
from ..protocol.carries import entry, take_entry
from ..protocol.question_desk import Answer, QuestionDesk, ServerHalf, server_half
from ..protocol.questions import Question, answers_to, ask
from .store_context import StoreContext

_QUESTION = "carried over"


def answer_on(server: _core.Server, desk: QuestionDesk) -> None:
    """Has a server answer what it carries over for a slice, or take it."""

    def answer(asked: Dict[str, Any], data: bytes) -> Answer:
        key, index = asked["slice"]
        if "drawn" not in asked:
            return {}, server.carried_over(key, index).tobytes()
        server.carry_over(key, index, asked["drawn"], np.frombuffer(data, np.float32))
        return {}, b""

    desk.register(_QUESTION, answer)


@server_half
def make_half(_options: Options) -> ServerHalf:
    """Every server answers so."""
    return ServerHalf(answer_on)


class CarryOver:
    """What a store's compressed keys carry over, here and on the servers.

    A worker carries over what its own encodings left out, so each worker saves and loads a file of
    its own for a run that goes on with the same bits. One that loads another worker's file, or a
    file without, begins with nothing.

    Parameters
    ----------
    context
        The store.
    method
        Its compression with all options, as text.
    codecs
        The compressed keys', now and later.
    """

    def __init__(
        self, context: StoreContext, method: str, codecs: Mapping[Key, Any]
    ) -> None:
        self._context = context
        self._worker = context.worker
        self._rank = context.rank
        self._method = method
        self._codecs = codecs

    def fetch(self, whole: bool = True) -> Dict[str, Any]:
        """An entry for a dictionary of states; none where nothing is compressed."""
        keys = self._context.keys_of_method()
        if not keys:
            return {}
        self._context.wait_for_all()
        here = {name: self._here(name) for name in keys}
        there = {name: self._on_servers(key) for name, key in keys.items() if whole}
        return entry(method=self._method, rank=self._rank, worker=here, servers=there)

    def put_back(self, states: Dict[Any, Any]) -> None:
        """Takes the entry out of the states and goes on from it.

        Raises
        ------
        KVStoreError
            For what another compression, or one with other options, has carried over, what is of
            other sizes, or has another format; of sizes before anything is changed.
        """
        saved = take_entry(states)
        if saved is not None and saved["method"] != self._method:
            raise KVStoreError(
                f"the states were saved with compression {saved['method']}; the store has "
                f"{self._method}"
            )
        keys = self._context.keys_of_method()
        if saved is not None:
            _check_sizes(saved, keys)
        self._context.wait_for_all()
        nothing = (0, np.zeros(0, np.float32))
        for name, key in keys.items():
            drawn, state = nothing if saved is None else saved["worker"].get(name, nothing)
            own = saved is not None and saved["rank"] == self._rank
            try:
                self._codecs[name].set_state(drawn, state if own else nothing[1])
            except ValueError as error:  # of another shape than the key has
                raise KVStoreError(
                    f"key {name!r}: the states are those of another model: {error}"
                ) from None
            if self._rank == 0:
                whole = nothing[1] if saved is None else saved["servers"].get(name, nothing[1])
                self._put_on_servers(key, drawn, whole)

    def _here(self, name: Key) -> Tuple[int, np.ndarray]:
        codec = self._codecs[name]
        return codec.rounds(), codec.state()

    def _on_servers(self, key: KeyArrays) -> np.ndarray:
        """Of the whole key; empty where servers carry nothing over."""
        slices = self._worker.slices(key.identity)
        questions = [
            ask(self._worker, server, _QUESTION, {"slice": [key.identity, index]})
            for index, _, _, server in slices
        ]
        parts = [part for _, part in answers_to(self._worker, questions)]
        return np.frombuffer(b"".join(parts), np.float32)

    def _put_on_servers(self, key: KeyArrays, drawn: int, whole: np.ndarray) -> None:
        questions: List[Question] = []
        for index, begin, length, server in self._worker.slices(key.identity):
            part = whole[begin : begin + length]
            what = {"slice": [key.identity, index], "drawn": drawn}
            questions.append(ask(self._worker, server, _QUESTION, what, part.tobytes()))
        answers_to(self._worker, questions)


def _check_sizes(saved: Mapping[str, Any], keys: Mapping[Key, KeyArrays]) -> None:
    """Raises KVStoreError for what keys of other sizes have carried over."""
    for name, key in keys.items():
        _, of_worker = saved["worker"].get(name, (0, ()))
        of_servers = saved["servers"].get(name, ())
        # Of a worker there may be several values an element; and keys without elements.
        if len(of_worker) % max(1, key.elements) or len(of_servers) not in (0, key.elements):
            raise KVStoreError(
                f"key {name!r}: the states are those of another model: they have "
                f"{len(of_worker)} and {len(of_servers)} values; the key has {key.elements}"
            )
