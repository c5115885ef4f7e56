"""The KVStore that a script sees: checks what it is given, and hands operations to the lane."""
from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import sys
import traceback
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.kvstore import KVStore, KVStoreBase

from .arrays import KeyArrays
from .config import Job, Options
from .errors import ArrayMismatch, ClusterError, KeyNotInitialised, KVStoreError
from .lane import ClusterLane, LocalLane
from .optimizer import check_elementwise

Key = Union[int, str]
Arrays = Union[mx.nd.NDArray, Sequence[Any]]


class P3(KVStore):
    """Priority-based parameter propagation: `mx.kv.create('p3')`, or `'dist_sync_p3'`.

    Behaves as MXNet's `dist_sync`. Dense keys travel on the lane: cut into slices, the layers that
    the next forward pass needs first ahead of the others (P3: Jayarajan et al., MLSys 2019), and
    answered by the servers without being asked. Sparse keys travel through the stock store.

    Outside a launched job it is rank 0 of 1 and runs the same code in the process.

    Parameters
    ----------
    options
        Read from KVSTORE_EXT_OPTIONS unless given.

    Raises
    ------
    OptionError
        For a malformed option or environment.
    ClusterError
        Where the cluster does not come up within the option `timeout`, workers disagree, or servers
        are not P3Server.
    """

    def __init__(self, options: Optional[Options] = None) -> None:
        options = options or Options.from_environment()
        job = Job.from_environment()
        if job is not None and any(not store.closed for store in _open_stores):
            raise KVStoreError("this process has a kvstore_ext store already; close it first")
        self.closed = True
        try:
            self._lane = (
                LocalLane("p3", options) if job is None else ClusterLane("p3", options, job)
            )
        except ClusterError as error:
            _failures.append(error)
            raise
        super().__init__(self._lane.native)
        self.closed = False
        self._worker = self._lane.worker
        self._keys: Dict[Key, KeyArrays] = {}
        self._updates: Dict[Key, int] = {}
        self._step = 0
        _open_stores.add(self)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # of a store half made, or an interpreter half gone
            try:
                self.close()
            except KVStoreError as error:  # nobody could catch it here
                _failures.append(error)
                print(f"kvstore_ext: {error}", file=sys.stderr)

    # What stays the stock store's is not repeated here: row_sparse_pull, is_capable and the rest.

    @property
    def type(self) -> str:
        """'dist_sync_p3': Module and Trainer look for 'dist' and '_sync' in it."""
        return "dist_sync_p3"

    @property
    def rank(self) -> int:
        """This worker's rank, from 0."""
        return self._lane.rank

    @property
    def num_workers(self) -> int:
        """How many workers the job has."""
        return self._lane.workers

    def init(self, key: Union[Key, Sequence[Key]], value: Arrays) -> None:
        """Gives keys their first value, rank 0's; returns before it has reached the servers.

        Parameters
        ----------
        key
            An int or str, or a sequence of them; a key is initialised once, on all workers.
        value
            An array a key, of float32, float64 or float16 and any shape; or row-sparse, which
            makes it a key of the stock store.

        Raises
        ------
        ArrayMismatch
            For integers and other types.
        KVStoreError
            For a key that exists.
        """
        self._begin_keys(_pairs(key, value), {}, 0)

    def broadcast(
        self, key: Union[Key, Sequence[Key]], value: Arrays, out: Arrays, priority: int = 0
    ) -> None:
        """Initialises keys and writes rank 0's value into `out`; otherwise as `init`."""
        self._begin_keys(_pairs(key, value), dict(_pairs(key, out)), priority)

    def push(self, key: Union[Key, Sequence[Key]], value: Arrays, priority: int = 0) -> None:
        """Sends gradients, summed over a worker's devices, once they are computed.

        Parameters
        ----------
        key
            An int or str, or a sequence of them.
        value
            An array a key, or a list of arrays, one a device, with the key's shape and type.
        priority
            Keys with higher ones go first, until the store has learned the order in which the next
            forward pass needs them.

        Raises
        ------
        KeyNotInitialised, ArrayMismatch, ClusterError
            Before anything is sent.
        """
        self._exchange(_pairs(key, value), None, priority)

    def pull(
        self,
        key: Union[Key, Sequence[Key]],
        out: Optional[Arrays] = None,
        priority: int = 0,
        ignore_sparse: bool = True,
    ) -> None:
        """Writes the value as of this worker's last push into `out`: one array, or one a device.

        Raises as `push` does.
        """
        assert out is not None, "pull needs an array to write to"
        self._exchange(None, _pairs(key, out), priority, ignore_sparse)

    def pushpull(
        self,
        key: Union[Key, Sequence[Key]],
        value: Arrays,
        out: Optional[Arrays] = None,
        priority: int = 0,
    ) -> None:
        """`push`, then `pull` into `out`, or into `value` where there is no `out`; returns at once.

        A slice of `out` is written when its result arrives; whoever reads `out` waits for all.
        """
        values = _pairs(key, value)
        self._exchange(values, values if out is None else _pairs(key, out), priority)

    def set_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Has the servers update with this optimizer, rank 0's, from its first step.

        Waits for the rounds that were begun without it.

        Raises
        ------
        KVStoreError
            For an optimizer that looks at more than one element at a time.
        """
        self._check_open()
        check_elementwise(optimizer)
        for key in self._keys.values():
            key.wait()
        self._updates.clear()
        self._step = 0
        self._lane.set_optimizer(optimizer, self)

    def set_gradient_compression(self, compression_params: Dict[str, Any]) -> None:
        """Not there yet: raises KVStoreError."""
        raise KVStoreError(f"p3 does not compress gradients; asked for {compression_params!r}")

    def barrier(self) -> None:
        """Waits until all workers have come here; raises ClusterError after `timeout`."""
        self._check_open()
        self._lane.barrier()

    def _barrier(self) -> None:
        self.barrier()

    def learned_order(self) -> List[Key]:
        """Keys in the order in which the next forward pass needs them; empty until it is known."""
        names = {arrays.identity: name for name, arrays in self._keys.items()}
        return [names[identity] for identity in self._worker.order() if identity in names]

    def take_trace(self) -> List[Tuple[float, str, Key, int, int, int]]:
        """Events since the last call, with the option `trace`: (time in seconds, what, key, slice,
        round, priority); what is 'ready', 'send', 'result' or 'done'."""
        names = {arrays.identity: name for name, arrays in self._keys.items()}
        return [(event[0], event[1], names[event[2]], *event[3:])
                for event in self._worker.take_trace()]

    def close(self) -> None:
        """Waits for all operations and for the other workers to close too. Idempotent.

        Called at exit by itself. Raises ClusterError where the job failed.
        """
        if self.closed:
            return
        self.closed = True
        if not self._worker.failure():
            with contextlib.suppress(MXNetError):  # of a computation: the script's to report
                mx.nd.waitall()
        self._lane.close(self)

    def fail(self, reason: str) -> None:
        """Ends the job on all processes, with this reason."""
        self._worker.abort(f"worker {self.rank}: {reason}")

    def _begin_keys(
        self,
        values: List[Tuple[Key, List[mx.nd.NDArray]]],
        outs: Dict[Key, List[mx.nd.NDArray]],
        priority: int,
    ) -> None:
        self._check_open()
        # All are checked before the first is sent.
        begun = [KeyArrays(name, _identity(name), arrays[0]) for name, arrays in values]
        for key, (name, arrays) in zip(begun, values):
            if name in self._keys:
                raise KVStoreError(f"key {name!r} is initialised already")
            for array in [*arrays, *outs.get(name, [])]:
                key.check(array)
        for key, (name, arrays) in zip(begun, values):
            self._keys[name] = key
            if key.stype != "default":
                super().init(name, arrays[0])
                continue
            self._worker.declare(*key.declaration())
            key.exchange(self._worker, True, arrays[:1], outs.get(name), priority, 0)

    def _exchange(
        self,
        values: Optional[List[Tuple[Key, List[mx.nd.NDArray]]]],
        outs: Optional[List[Tuple[Key, List[mx.nd.NDArray]]]],
        priority: int,
        ignore_sparse: bool = True,
    ) -> None:
        self._check_open()
        if values is not None and outs is not None:
            found, allowed = [name for name, _ in outs], [name for name, _ in values]
            if found != allowed:
                raise KVStoreError(f"keys to pull are {found}; keys to push are {allowed}")
        for name, arrays in [*(values or []), *(outs or [])]:
            self._check_arrays(name, arrays)
        for position, (name, arrays) in enumerate(values or outs or []):
            key = self._keys[name]
            if key.stype != "default":
                self._exchange_natively(name, arrays, values, priority, ignore_sparse)
                continue
            if values is not None:
                self._updates[name] = self._updates.get(name, 0) + 1
                self._step = max(self._step, self._updates[name])
            key.exchange(
                self._worker,
                values is not None,
                arrays if values is not None else None,
                None if outs is None else outs[position][1],
                priority,
                self._step,
            )

    def _check_arrays(self, name: Key, arrays: List[mx.nd.NDArray]) -> None:
        key = self._keys.get(name)
        if key is None:
            raise KeyNotInitialised(
                f"key {name!r} was never initialised; initialised are "
                f"{', '.join(map(repr, self._keys)) or 'none'}"
            )
        for array in arrays:
            key.check(array)

    def _exchange_natively(
        self,
        name: Key,
        arrays: List[mx.nd.NDArray],
        pushes: Any,
        priority: int,
        ignore_sparse: bool,
    ) -> None:
        if pushes is not None:
            super().push(name, arrays, priority)
        else:
            super().pull(name, arrays, priority, ignore_sparse)

    def _check_open(self) -> None:
        if self.closed:
            raise KVStoreError("the store is closed")
        failure = self._worker.failure()
        if failure:
            raise ClusterError(failure)


def _pairs(
    key: Union[Key, Sequence[Key]], value: Arrays
) -> List[Tuple[Key, List[mx.nd.NDArray]]]:
    """Keys with their arrays, one a device, from the forms that MXNet's stores accept; a key that
    stands twice in a list gets the arrays of both."""
    if isinstance(key, (int, str)) and not isinstance(key, bool):
        arrays = [value] if isinstance(value, mx.nd.NDArray) else list(value)
        for array in arrays:
            if not isinstance(array, mx.nd.NDArray):
                raise ArrayMismatch(f"key {key!r}: got a {type(array).__name__}, not an NDArray")
        if not arrays:
            raise ArrayMismatch(f"key {key!r}: got no array")
        # Arrays of mx.np refuse MXNet's older copies; this is the same memory.
        return [(key, [array.as_nd_ndarray() for array in arrays])]
    if not isinstance(key, (list, tuple)):
        raise KVStoreError(f"a key is {key!r}; it must be an int, a str, or a list of them")
    if isinstance(value, mx.nd.NDArray) or len(key) != len(value):
        count = 1 if isinstance(value, mx.nd.NDArray) else len(value)
        raise KVStoreError(f"got {len(key)} keys and {count} values; they must be as many")
    grouped: Dict[Key, List[mx.nd.NDArray]] = {}
    for single, arrays in zip(key, value):
        for name, group in _pairs(single, arrays):
            grouped.setdefault(name, []).extend(group)
    return list(grouped.items())


def _identity(name: Key) -> int:
    """The number by which a key travels, the same in every process and run."""
    if isinstance(name, int):
        if not 0 <= name < 1 << 63:
            raise KVStoreError(f"a key is {name}; it must be 0 to 2**63 - 1, or a str")
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1 << 63


_open_stores: weakref.WeakSet = weakref.WeakSet()
_failures: List[KVStoreError] = []  # of opening and closing stores


def _close_at_exit() -> None:
    """Leaves the job in order; a script that failed tells the others, lest they wait for it."""
    crash = getattr(sys, "last_value", None)
    for store in list(_open_stores):
        if store.closed:
            continue
        if crash is not None and not store._worker.failure():
            words = traceback.format_exception_only(type(crash), crash)[-1].strip()
            store.fail(f"its script failed: {words}")
        try:
            store.close()
        except KVStoreError as error:
            _failures.append(error)
            if crash is None:
                print(f"kvstore_ext: {error}", file=sys.stderr)
    if _failures:
        # Threads of ps-lite may still wait for the missing, so the interpreter is not wound down.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


atexit.register(_close_at_exit)


def _refused(name: str) -> Callable[[], P3]:
    def refuse() -> P3:
        raise KVStoreError(
            f"there is no store {name!r}: p3 is synchronous, so every worker sees the sum of all "
            "gradients of a round. The stores are 'p3' and 'dist_sync_p3'"
        )

    return refuse


for _name in ("p3", "dist_sync_p3"):
    KVStoreBase.kv_registry[_name] = P3
# MXNet would make a local store of a name that it does not know, and train without a word.
for _name in ("dist_async_p3", "dist_p3_async", "async_p3", "p3_async"):
    KVStoreBase.kv_registry[_name] = _refused(_name)
