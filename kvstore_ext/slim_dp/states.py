"""What Slim-DP adds to the states that a script saves: local and global model, and the core."""
from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Tuple

import mxnet as mx
import numpy as np

from .. import _core
from ..compression.store_context import StoreContext
from ..errors import ClusterError, KVStoreError, of_job
from ..keys.key_arrays import KeyArrays
from ..keys.names import Key
from ..protocol.carries import NOBODY, entry, take_entry
from ..protocol.questions import Question, answers_to, ask
from .core_selection import RESUME
from .local_training import LocalTraining


class SlimStates:
    """Saved with the optimizer's states of each worker, which loads its own file; all do.

    A run that goes on from there has the same bits as one that never stopped, without anything else
    restored: the script's arrays get their local values back, and the servers, from rank 0's file,
    the global ones.
    """

    def __init__(
        self,
        training: LocalTraining,
        codecs: Mapping[Key, _core.SlimKey],
        context: StoreContext,
    ) -> None:
        self._training = training
        self._codecs = codecs
        self._worker = context.worker
        self._rank = context.rank
        self._context = context

    def fetch(self, whole: bool = True) -> Dict[str, Any]:
        """An entry for a dictionary of states; none before the first step."""
        training = self._training
        if not training.steps:
            return {}
        self._context.wait_for_all()
        training.selector.join()
        cores = self._cores()
        with of_job(self._worker.failure):
            local = {name: array.asnumpy() for name, array in training.own().items()}
        keys = training.keys.items()
        content = {
            "method": repr(training.method),
            "rank": self._rank,
            "steps": dict(training.steps),
            "chosen": training.chosen,
            "cores": cores,
            "local": local,
            "base": {name: self._codecs[name].base() for name in training.keys},
            "global": {name: self._global(key) for name, key in keys if whole},
        }
        return entry(**content)

    def put_back(self, states: Dict[Any, Any]) -> None:
        """Takes the entry out of the states and goes on from it; without one, changes nothing.

        Raises
        ------
        KVStoreError
            For states of other options, another worker, other keys, or another format; where the
            script has not told where its parameters are; within global_parameters().
        ClusterError
            Where the other workers do not load theirs, within the option `patience`.
        """
        saved = take_entry(states)
        if saved is None:
            return
        training = self._training
        training.check_shows_own("states are loaded")
        if saved.get("rank") == NOBODY:  # this worker is new, and begins with the global model
            begin = saved["global"]
            saved = {**saved, "rank": self._rank, "local": begin, "base": begin}
        found = (saved.get("method"), saved.get("rank"), set(saved.get("steps", ())))
        allowed = (repr(training.method), self._rank, set(training.keys))
        for what, one, other in zip(("method", "rank", "keys"), found, allowed):
            if one != other:
                raise KVStoreError(
                    f"the states were saved with {what} {one}; this worker's store has {other}"
                )
        unknown = [name for name in training.keys if name not in training.arrays]
        if unknown:
            raise KVStoreError(
                f"key {unknown[0]!r}: the store does not know the script's parameters, which are "
                "to get the worker's own values; broadcast the key before, or pull it"
            )
        self._context.wait_for_all()
        training.selector.join()
        if training.steps:
            self._told()  # a core that came later would be of no run that goes on
        training.steps = dict(saved["steps"])
        training.chosen = saved["chosen"]
        first = next(iter(training.keys.values()))
        begun = self._worker.rounds(first.identity) - 1
        training.model.resume(training.rounds, begun)
        cut = {
            name: {s: self._cut(key, cores[name]) for s, cores in saved["cores"].items()}
            for name, key in training.keys.items()
        }
        for name in training.keys:
            self._codecs[name].set_base(saved["base"][name])
            for selection, parts in cut[name].items():
                for index, members in enumerate(parts):
                    self._codecs[name].set_core(index, selection, members)
            for array in training.arrays[name]:
                mx.nd.array(saved["local"][name]).copyto(array)
        self._context.barrier()  # what was asked of the servers before has come to everybody
        if self._rank == 0:
            self._put_on_servers(saved["global"], cut)
        self._context.barrier()  # nobody pushes before the servers have it

    def _cores(self) -> Dict[int, Dict[Any, np.ndarray]]:
        """By selection and key, whether each element is in the core; waits for the last one."""
        found: Dict[int, Dict[Any, np.ndarray]] = {}
        for key, cores in self._told():
            for selection, parts in cores.items():
                found.setdefault(selection, {})[key.name] = self._joined(key, parts)
        return found

    def _told(self) -> List[Tuple[KeyArrays, Dict[int, Dict[int, bytes]]]]:
        """Each key with its cores, once the servers have told the last one."""
        if not self._training.method.selects:
            return []
        latest = time.monotonic() + self._context.patience
        return [(key, self._cores_of(key, latest)) for key in self._training.keys.values()]

    def _cores_of(self, key: KeyArrays, latest: float) -> Dict[int, Dict[int, bytes]]:
        """A key's cores by selection and slice, once the servers have told the last one."""
        chosen, slices = self._training.chosen, len(self._worker.slices(key.identity))
        while True:
            cores = self._codecs[key.name].cores()
            if len(cores.get(chosen, ())) == slices:
                return cores
            if self._worker.failure():
                raise ClusterError(self._worker.failure())
            if time.monotonic() > latest:
                raise ClusterError(
                    f"the servers have not told the core of selection {chosen} within "
                    f"{self._context.patience:g} s"
                )
            time.sleep(0.01)

    def _joined(self, key: KeyArrays, parts: Dict[int, bytes]) -> np.ndarray:
        members = [
            np.unpackbits(np.frombuffer(parts[index], np.uint8), bitorder="little")[:length]
            for index, _, length, _ in self._worker.slices(key.identity)
        ]
        return np.packbits(np.concatenate(members))

    def _cut(self, key: KeyArrays, core: np.ndarray) -> List[bytes]:
        """A key's core, slice by slice, as the lane has it."""
        members = np.unpackbits(core)[: key.elements]
        parts = []
        for _, begin, length, _ in self._worker.slices(key.identity):
            bits = np.zeros(-(-length // 64) * 64, np.uint8)
            bits[:length] = members[begin : begin + length]
            parts.append(np.packbits(bits, bitorder="little").tobytes())
        return parts

    def _global(self, key: KeyArrays) -> np.ndarray:
        value = mx.nd.empty(key.shape, mx.cpu(), key.dtype)
        key.pull([value], 0)
        with of_job(self._worker.failure):
            return value.asnumpy()

    def _put_on_servers(
        self, values: Dict[Any, np.ndarray], cut: Dict[Any, Dict[int, List[bytes]]]
    ) -> None:
        asked: List[Question] = []
        for name, key in self._training.keys.items():
            value, cores = values[name].reshape(-1), cut[name]
            for index, begin, length, server in self._worker.slices(key.identity):
                what = {"slice": [key.identity, index, length], "selections": list(cores)}
                parts = [cores[selection][index] for selection in cores]
                data = value[begin : begin + length].tobytes() + b"".join(parts)
                asked.append(ask(self._worker, server, RESUME, what, data))
        answers_to(self._worker, asked)
