"""A store that finds out whether workers still have the same parameters (option verify_every)."""
from __future__ import annotations

import contextlib
import socket
from typing import Any, Dict, List, Optional

import mxnet as mx
import numpy as np

from .. import _core
from ..config import Options
from ..errors import KVStoreError
from ..keys.names import Pairs, stype_of
from ..protocol.digest_board import QUESTION
from ..protocol.questions import Question, answer_to, ask
from .snapshot_store import SnapshotStore


class VerifiedStore(SnapshotStore):
    """After every so many steps it leaves digests of the script's parameters on server 0, which
    compares them with those of the other workers.

    Parameters are where the script has keys that the store updates, pulled or broadcast, and what a
    Trainer or a Module updates beside it; of several devices, the first one's. Those that a method
    trains on each worker, row-sparse ones and running averages are not among them.
    """

    def __init__(self, options: Optional[Options] = None) -> None:
        super().__init__(options)
        self._verified = 0  # steps after which it was done
        self._question: Optional[Question] = None  # the last, if nobody has seen the answer yet

    def _before_push(self, values: Pairs) -> None:
        """To be called with what is about to be pushed: before a step's first push the parameters
        are still those of the step before."""
        super()._before_push(values)
        if self._lane.verify_every and self._router.begins_step(name for name, _ in values):
            self._verify()

    def _finish(self) -> None:
        super()._finish()
        if self._worker.failure():
            return
        with contextlib.suppress(KVStoreError, mx.MXNetError):  # which closing tells
            self._verify()
            self._await_answer()

    def _verify(self) -> None:
        every, step = self._lane.verify_every, self._router.steps
        if not every or self._lane.workers == 1 or step % every or step == self._verified:
            return
        self._verified = step
        self._await_answer()
        digests = {name: _digest(array) for name, array in self._parameters().items()}
        asked = {
            "store": self.number,
            "step": step,
            "rank": self.rank,
            "host": socket.gethostname(),
            "keys": list(digests),
        }
        data = np.array(list(digests.values()), "<u4").tobytes()
        self._question = ask(self._worker, 0, QUESTION, asked, data)

    def _await_answer(self) -> None:
        if self._question is not None:
            question, self._question = self._question, None
            answer_to(self._worker, question)

    def _parameters(self) -> Dict[str, mx.nd.NDArray]:
        """By the names that errors have, in the order of the keys' first values."""
        router = self._router
        found: Dict[str, List[Any]] = {
            str(name): arrays
            for name, arrays in router.parameters().items()
            if not router.method.trains(name)
        }
        replicas = [] if router.method.trains_on_workers else [find() for find in self._replicas]
        keys = {repr(key): key for key in router.policies}
        for replica in replicas:
            for item in replica.items if replica is not None else []:
                name = item.name
                if replica is replicas[0]:  # whose items are the store's own keys
                    if not router.is_trained(keys[name]):
                        continue
                    name = str(keys[name])
                found.setdefault(name, item.arrays)
        known = {str(key): parameter for key, parameter in router.parameter_names().items()}
        return {
            f"{name} ({known[name]})" if known.get(name, name) != name else name: arrays[0]
            for name, arrays in found.items()
            if stype_of(arrays[0]) == "default"
        }


def _digest(array: mx.nd.NDArray) -> int:
    """CRC-32C of its bytes, once it is computed."""
    return _core.crc32c(np.ascontiguousarray(array.asnumpy()))
