"""The keys of one store, from their first values on: which way each goes, and who updates it."""
from __future__ import annotations

import warnings
import weakref
from typing import Any, Callable, Dict, List, Optional, Union

import mxnet as mx

from . import _core
from .arrays import KeyArrays
from .carried import Carried, Carries
from .compressed_keys import CompressedKeys
from .compression import Compression
from .errors import KeyNotInitialised, KVStoreError
from .keys import Key, Pairs, identity, stype_of
from .lane import ClusterLane
from .local_lane import LocalLane
from .settings import SettingsWatch
from .slim_dp import LocalTraining
from .slim_options import SlimDP
from .slim_states import SlimStates
from .sparse import SparseKey, number_of
from .states import ServerStates
from .updates import WorkerStates, WorkerUpdates, updates_slices


class Exchange:
    """A store's keys on a lane.

    Dense ones travel on it. Those with row-sparse weights or gradients travel through MXNet's own
    store. The optimizer runs on the servers, slice by slice, where that comes to the same as
    updating whole parameters; otherwise on the workers.
    """

    def __init__(self, lane: Union[ClusterLane, LocalLane]) -> None:
        self.number = lane.open_store()
        self.keys: Dict[Key, KeyArrays] = {}  # dense
        self._lane = lane
        self._worker = lane.worker
        self._sparse: Dict[Key, SparseKey] = {}
        self._sparse_names: Dict[int, Key] = {}
        self._positions: Dict[Key, int] = {}  # of all keys, in the order of their first values
        self.compressed = CompressedKeys(lane.worker, self.keys)
        self.carried: Carries = Carried(lane.worker, self.keys, self.compressed, lane.rank)
        self.local: Optional[LocalTraining] = None  # with Slim-DP
        self._updater: Any = None
        # Where the optimizer runs: one of these, or neither without one.
        self._on_servers = False
        self._on_workers: Optional[WorkerUpdates] = None
        # What has changed of it since the servers got it; or all of it, where workers update.
        self._watch: Optional[SettingsWatch] = None
        self._sparse_watch: Optional[SettingsWatch] = None
        self._first_update = 0  # the optimizer's, before its first step here
        self._pushes: Dict[Key, int] = {}
        self._step = 0  # pushes of the key that has most

    def compress(self, method: Compression) -> None:
        """Compresses the gradients of all keys; raises KVStoreError once there are any."""
        if self._positions:
            raise KVStoreError(
                f"set_gradient_compression comes too late: {len(self._positions)} keys are "
                "initialised; it must come before the first"
            )
        self.compressed.method = method
        if isinstance(method, SlimDP):
            where = (self._worker, self.number, self._lane.rank, self._lane.workers)
            self.local = LocalTraining(*where, method, self.keys)
            self.carried = SlimStates(self.local, self.number, self._lane)

    def set_optimizer(self, optimizer: mx.optimizer.Optimizer) -> Any:
        """Updates with this optimizer from now on; returns what MXNet calls the store's updater."""
        method = self.compressed.method
        on_workers = method is not None and method.updates_on_workers
        on_servers = self.local is None and not on_workers and updates_slices(optimizer)
        self._check_change(optimizer, on_servers)
        for key in self.keys.values():
            key.wait()
        self.compressed.adopt(optimizer)
        if on_servers and method is not None and method.prefers_workers:
            warnings.warn(
                "the optimizer runs on the servers, so that parameters travel back, uncompressed; "
                "with Trainer(..., update_on_kvstore=False), or a store of the name "
                f"{method.name!r}, sums travel back, compressed",
                stacklevel=3,
            )
        if on_servers:
            self._on_servers, self._on_workers = True, None
            self._send_optimizer(optimizer)
            self._updater = ServerStates(
                optimizer,
                self._worker,
                self.number,
                self.keys,
                self._sparse,
                weakref.WeakMethod(self._send_optimizer),
                self.carried,
                decides=self._lane.rank == 0,
            )
        else:
            self._updater = WorkerStates(optimizer, self.keys, self.carried)
            self._update_on_workers(self._updater)
            if self.local is not None:
                self.local.updater = self._updater
            self._watch = SettingsWatch(optimizer, sent=False)
            if self._sparse:
                self._send_sparse_optimizer()
        return self._updater

    def set_updater(self, updater: Callable[[Key, Any, Any], None]) -> None:
        """Updates whole parameters by updater(key, gradient, value), outside a cluster."""
        if isinstance(self._lane, LocalLane):
            self._update_on_workers(updater)
            names = self._sparse_names
            self._lane.set_updater(lambda number, *arrays: updater(names[number], *arrays))

    def pull_rows(self, name: Key, out: Any, rows: Any, priority: int) -> None:
        """Writes rows of a key's value into a row-sparse array, or one a device."""
        self.find(name)
        if name not in self._sparse:
            raise KVStoreError(f"key {name!r} is dense, with dense gradients: use pull")
        self._sparse[name].pull_rows(out, rows, priority)

    def begin(
        self, values: Pairs, outs: Dict[Key, List[mx.nd.NDArray]], priority: int
    ) -> None:
        """Gives keys their first values, rank 0's, and writes them into outs; returns at once."""
        # All are checked before the first is sent.
        begun = {
            name: KeyArrays(name, identity(self.number, name), arrays[0])
            for name, arrays in values
        }
        for position, (name, arrays) in enumerate(values, len(self._positions)):
            if name in self._positions:
                raise KVStoreError(f"key {name!r} is initialised already")
            if stype_of(arrays[0]) != "default":
                self._free_number(name, position)
            for array in [*arrays, *outs.get(name, [])]:
                begun[name].check(array, arrays[0].stype)
            self.compressed.check(name, arrays[0])
            if self.local is not None and self.compressed.of(name) is not None:
                self.local.check_new(name)
        for name, arrays in values:
            self._positions[name] = len(self._positions)
            if stype_of(arrays[0]) == "default":
                self._begin_dense(begun[name], arrays[0], outs.get(name), priority)
            else:
                self._begin_sparse(name, arrays[0])

    def _begin_dense(
        self,
        key: KeyArrays,
        value: mx.nd.NDArray,
        outs: Optional[List[mx.nd.NDArray]],
        priority: int,
    ) -> None:
        self.keys[key.name] = key
        method = self.compressed.of(key.name)
        key.declare(self._worker, self.number, self._codec(key, method), method)
        self.compressed.declared(key)
        if self.local is not None and key.compressed and outs:
            self.local.arrays[key.name] = outs
        if self._on_workers is None or self._trains_locally(key):
            return key.exchange(self._worker, True, [value], outs, priority, 0)
        own = self._on_workers.begin(key.name, value)
        key.exchange(self._worker, True, [value], [own], priority, 0)
        return self._on_workers.read(key.name, outs or [])

    def _codec(self, key: KeyArrays, method: Optional[Compression]) -> _core.KeyCodec:
        if method is None:
            return _core.PlainCodec()
        if self.local is not None:
            return self.local.codec(key)
        specification = method.specification(key.shape)
        return _core.GradientCodec(specification, self._lane.workers, method.non_finite_ends_job)

    def _begin_sparse(self, name: Key, value: mx.nd.NDArray) -> None:
        if self._on_workers is not None and not self._sparse:
            self._send_sparse_optimizer()
        self._lane.begin_sparse()
        number = self._free_number(name, self._positions[name])
        self._sparse_names[number] = name
        lane = self._lane
        self._sparse[name] = SparseKey(lane.stock, number, name, value, lane.servers, lane.call)

    def _free_number(self, name: Key, position: int) -> int:
        number = number_of(self.number, name, position)
        if number in self._sparse_names:
            raise KVStoreError(
                f"sparse keys {name!r} and {self._sparse_names[number]!r} have the same number "
                f"{number}: a str has that of its position; use either numbers or words"
            )
        return number

    def _turn_sparse(self, name: Key) -> None:
        """A dense key whose gradients turn out to be row-sparse becomes one of MXNet's store."""
        self._free_number(name, self._positions[name])  # raises where there is none
        key = self.keys.pop(name)
        if self._watch is not None:
            self._watch.forget(name)
        value = mx.nd.empty(key.shape, dtype=key.dtype)
        if self._on_workers is None:
            key.exchange(self._worker, False, None, [value], 0, 0)
        else:
            self._on_workers.read(name, [value])
        value.wait_to_read()
        self._begin_sparse(name, value)

    def exchange(
        self, values: Optional[Pairs], outs: Optional[Pairs], priority: int
    ) -> None:
        """Pushes values, then pulls into outs, where there are any; returns at once."""
        if values is not None and outs is not None:
            found, allowed = [name for name, _ in outs], [name for name, _ in values]
            if found != allowed:
                raise KVStoreError(f"keys to pull are {found}; keys to push are {allowed}")
        targets = dict(outs or [])
        for name, arrays in values or []:
            key = self.find(name)
            key.check_pushed(arrays)
            self.compressed.check(name, arrays[0])
            if self.local is not None and self._trains_locally(key):
                given = outs is not None and outs is not values
                self.local.check_step(name, arrays, targets[name] if given else None)
        for name, arrays in outs or []:
            self.find(name).check_pulled(arrays)
        for name, arrays in values or outs or []:
            pushed = None if values is None else arrays
            if pushed is not None and stype_of(pushed[0]) != "default" and name in self.keys:
                self._turn_sparse(name)
            if name in self._sparse:
                self._exchange_sparse(name, pushed, targets.get(name), priority)
            else:
                self._exchange_dense(name, pushed, targets.get(name), priority)

    def _exchange_dense(
        self,
        name: Key,
        values: Optional[List[mx.nd.NDArray]],
        outs: Optional[List[mx.nd.NDArray]],
        priority: int,
    ) -> None:
        key, whole = self.keys[name], self._on_workers
        if self._trains_locally(key):
            return self._train_locally(name, values, outs, priority)
        settings = "" if values is None else self._count(name, self._watch)
        plain = self.compressed.plain(name, self._step)
        how = (priority, self._step, settings, plain)
        if whole is None:
            return key.exchange(self._worker, values is not None, values, outs, *how)
        if values is not None:
            total = whole.sum_of(name)
            key.exchange(self._worker, True, values, [total], *how)
            if self.local is not None:
                total /= self._lane.workers  # the optimizer sees a gradient of one worker's batch
            whole.update(name)
        return whole.read(name, outs or [])

    def _trains_locally(self, key: Union[KeyArrays, SparseKey]) -> bool:
        return self.local is not None and isinstance(key, KeyArrays) and key.compressed

    def _train_locally(
        self,
        name: Key,
        gradients: Optional[List[mx.nd.NDArray]],
        parameters: Optional[List[mx.nd.NDArray]],
        priority: int,
    ) -> None:
        assert self.local is not None
        if gradients is None:
            return self.keys[name].exchange(self._worker, False, None, parameters, priority, 0)
        watch = self._watch if self.local.communicates(name) else None
        settings = self._count(name, watch)
        assert parameters is not None, "check_step has seen to it"
        self.local.step(name, gradients, parameters, priority, self._step, settings)
        return None

    def _exchange_sparse(
        self,
        name: Key,
        values: Optional[List[mx.nd.NDArray]],
        outs: Optional[List[mx.nd.NDArray]],
        priority: int,
    ) -> None:
        key = self._sparse[name]
        if values is not None:
            watch = self._watch if self._on_workers is None else self._sparse_watch
            settings = self._count(name, watch)
            if settings and self._lane.rank == 0:
                mx.nd.waitall()  # what was pushed before is to be updated as before
                self._lane.sparse_settings(key.number, settings)
            key.push(values, priority)
        if outs is not None:
            key.pull(outs, priority)

    def _count(self, name: Key, watch: Optional[SettingsWatch]) -> str:
        """Counts a key's push; returns what its servers must hear of the optimizer with it."""
        self._pushes[name] = self._pushes.get(name, 0) + 1
        self._step = max(self._step, self._pushes[name])
        if watch is None:
            return ""
        optimizer = self._updater.optimizer
        if self._on_workers is None:
            # So that trainer.learning_rate says what the servers' schedule has come to.
            optimizer.num_update = self._first_update + self._step
            if self._lane.rank != 0:
                return ""  # rank 0's hold for the job
        return watch.news(optimizer, name)

    def _send_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        self._pushes.clear()
        self._step = 0
        self._first_update = optimizer.num_update
        self._watch = SettingsWatch(optimizer)
        self._lane.set_optimizer(self.number, optimizer, sparse_only=False)

    def _send_sparse_optimizer(self) -> None:
        if isinstance(self._updater, mx.optimizer.Updater):
            optimizer = self._updater.optimizer
            self._sparse_watch = SettingsWatch(optimizer)
            self._lane.set_optimizer(self.number, optimizer, sparse_only=True)

    def _update_on_workers(self, updater: Callable[[Key, Any, Any], None]) -> None:
        if self._on_workers is not None:
            return self._on_workers.replace(updater)
        whole = WorkerUpdates(updater)
        for name, key in self.keys.items():
            if self._trains_locally(key):
                continue
            value = whole.begin(name, mx.nd.empty(key.shape, dtype=key.dtype))
            key.exchange(self._worker, False, None, [value], 0, 0)
        self._on_workers = whole
        return None

    def _check_change(self, optimizer: mx.optimizer.Optimizer, on_servers: bool) -> None:
        """Servers cannot stop to update, and do not have the values that workers have updated."""
        from_servers = self._on_servers and not on_servers
        from_workers = self._on_workers is not None and on_servers and len(self.keys) > 0
        before = getattr(self._updater, "optimizer", self._updater)
        another = self._step > 0 and before is not None and type(before) is not type(optimizer)
        if from_servers or from_workers or another:
            raise KVStoreError(
                f"the store's optimizer is {type(before).__name__}, which cannot be changed to "
                f"{type(optimizer).__name__} any more; open another store for it"
            )

    def find(self, name: Key) -> Union[KeyArrays, SparseKey]:
        """A key by its name; raises KeyNotInitialised where there is none."""
        found = self.keys.get(name) or self._sparse.get(name)
        if found is None:
            raise KeyNotInitialised(
                f"key {name!r} was never initialised; initialised are "
                f"{', '.join(map(repr, self._positions)) or 'none'}"
            )
        return found
