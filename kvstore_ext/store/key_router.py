"""The keys of one store, from their first values on: finds each one's policy, and calls it."""
from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import mxnet as mx
import numpy as np

from ..compression import Compression
from ..errors import KeyNotInitialised, KVStoreError
from ..keys.key_arrays import KeyArrays
from ..keys.key_policy import KeyPolicy, Values
from ..keys.names import Key, Pairs, identity, stype_of
from ..lane.lane import Lane
from ..notes import warn_script
from ..optimizer.server_states import ServerStates
from ..optimizer.updates_slices import draws_at_random, updates_slices
from ..optimizer.worker_states import WorkerStates
from .sparse_key import SparseKey, SparseKeys
from .store_keys import StoreKeys
from .summed_key import UpdatedOnServers, UpdatedOnWorkers, WorkerUpdater


class KeyRouter(StoreKeys):
    """A store's keys on a lane: begins, pushes and pulls them, and has them updated.

    Dense ones travel on it. Those with row-sparse weights or gradients travel through MXNet's own
    store. The optimizer runs on the servers, slice by slice, where that comes to the same as
    updating whole parameters; otherwise on the workers.
    """

    def __init__(self, lane: Lane) -> None:
        super().__init__(lane)
        self.states: Any = None  # what MXNet calls the store's updater
        self.sparse = SparseKeys(lane, self._pushes, self.number)  # those of MXNet's own store
        # Where the optimizer runs: one of these, or neither without one.
        self.on_servers = False
        self._on_workers: Optional[WorkerUpdater] = None
        self._untrained = 0  # steps before there was an optimizer of the class that it has

    def compress(self, compression: Compression) -> None:
        """Gives the store a method, as each of its Modules does; raises KVStoreError for another
        one than before once there are keys, or an optimizer."""
        if compression == self.method.compression:
            return
        if self.policies:
            raise KVStoreError(
                f"set_gradient_compression comes too late: {len(self.policies)} keys are "
                "initialised; it must come before the first"
            )
        takes_momentum = compression.applies_momentum and self._context.adopted.any
        if self.states is not None or self._on_workers is not None or takes_momentum:
            raise KVStoreError(
                "set_gradient_compression comes too late: the store has an optimizer, which "
                "depends on the compression; it must come before set_optimizer and "
                "adopt_optimizer"
            )
        self.method = compression.in_store(self._context)

    def begin(self, values: Pairs, outs: Dict[Key, Values], priority: int) -> None:
        """Gives keys their first values, rank 0's, and writes them into outs; returns at once."""
        # All are checked before the first is sent.
        begun = {
            name: KeyArrays(self._lane.worker, name, identity(self.number, name), arrays[0])
            for name, arrays in values
        }
        sparse: Dict[Key, SparseKey] = {}
        for position, (name, arrays) in enumerate(values, len(self.policies)):
            if name in self.policies:
                raise KVStoreError(f"key {name!r} is initialised already")
            if stype_of(arrays[0]) != "default":
                sparse[name] = self.sparse.new(name, position, arrays[0], sparse.values())
            for array in [*arrays, *outs.get(name, [])]:
                begun[name].check(array, arrays[0].stype)
            self.method.check_new(name, arrays[0])
        for name, arrays in values:
            policy: KeyPolicy
            if name in sparse:
                policy = self._add_sparse(sparse[name])
            else:
                policy = self._new_dense(begun[name])
            self.policies[name] = policy
            policy.begin(arrays[0], outs.get(name), priority)
            self._kept.begin(name, outs.get(name))

    def push(self, values: Pairs, priority: int) -> None:
        """Sends gradients; returns at once."""
        self._check_push(values, {})
        for name, arrays in values:
            self._policy_for(name, arrays).push(arrays, priority)
            self._kept.push(name)

    def pull(self, outs: Pairs, priority: int) -> None:
        """Writes the keys' values into outs; returns at once."""
        for name, arrays in outs:
            self.find(name).check_pull(arrays)
        for name, arrays in outs:
            self.policies[name].pull(arrays, priority)
            if self._is_updated:
                self._kept.pull(name, arrays)

    def pushpull(self, values: Pairs, outs: Optional[Pairs], priority: int) -> None:
        """Pushes values, then pulls into outs; None for into the values. Returns at once."""
        targets = dict(values if outs is None else outs)
        self._check_push(values, {} if outs is None else targets)
        for name, arrays in targets.items():
            self.find(name).check_pull(arrays)
        for name, arrays in values:
            self._policy_for(name, arrays).pushpull(arrays, targets[name], priority)
            self._kept.push(name)
            if self._is_updated:
                self._kept.pull(name, targets[name])

    def pull_rows(self, name: Key, out: Any, rows: Any, priority: int) -> None:
        """Writes rows of a key's value into a row-sparse array, or one a device."""
        self.find(name).pull_rows(out, rows, priority)

    def find(self, name: Key) -> KeyPolicy:
        """A key's policy; raises KeyNotInitialised where there is no such key."""
        found = self.policies.get(name)
        if found is None:
            raise KeyNotInitialised(
                f"key {name!r} was never initialised; initialised are "
                f"{', '.join(map(repr, self.policies)) or 'none'}"
            )
        return found

    def set_optimizer(self, optimizer: mx.optimizer.Optimizer) -> Any:
        """Updates with this optimizer from now on; returns what MXNet calls the store's updater."""
        on_servers = (
            self.method.updates_on_servers
            and updates_slices(optimizer)
            and not self._updates_by_function()
        )
        self._check_change(optimizer, on_servers)
        if not on_servers:
            self._warn_of_draws(optimizer)
        if self._differs(optimizer):
            self._untrained = self.steps
        for key in self.keys.values():
            key.wait()
        if self.sparse.keys:
            self._lane.wait_for_all()
        self.method.adopt(optimizer)
        if on_servers:
            self.states = self._begin_on_servers(optimizer)
        else:
            self.states = self._begin_on_workers(optimizer)
        self._pushes.follow(self.states)
        return self.states

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Tells the method of an optimizer with which the script updates parameters."""
        self._warn_of_draws(optimizer)
        self.method.adopt(optimizer)

    def _warn_of_draws(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Of an optimizer that each worker has."""
        if self._lane.workers == 1 or self.method.trains_on_workers:
            return
        if draws_at_random(optimizer):
            warn_script(
                f"optimizer {type(optimizer).__name__} draws random numbers, here on each worker, "
                "so that their parameters drift apart: with SGLD and the store 'p3' servers "
                "update, which draw once for all"
            )

    def set_updater(self, updater: Callable[[Key, Any, Any], None]) -> None:
        """Updates whole parameters by updater(key, gradient, value); not in a cluster."""
        if self.on_servers:
            self._refuse_change("a function")
        keys = self.sparse.keys
        self._lane.set_updater(lambda number, *arrays: updater(keys[number].name, *arrays))
        self._update_on_workers(updater)
        self._pushes.begin_on_workers(None)

    def parameters(self) -> Dict[Key, Values]:
        """As StoreKeys has them; none where values are sums, which are no parameters."""
        return super().parameters() if self._is_updated else {}

    @property
    def _is_updated(self) -> bool:
        """Whether keys' values are parameters, and not sums."""
        return self.on_servers or self._on_workers is not None

    @property
    def _optimizer(self) -> Any:
        """The one that was set or loaded last, if any."""
        return getattr(self.states, "optimizer", None)

    def _differs(self, optimizer: mx.optimizer.Optimizer) -> bool:
        return type(optimizer) is not type(self._optimizer)

    def _updates_by_function(self) -> bool:
        """Whether a user's function has updated keys, whose values the servers do not have."""
        return self._on_workers is not None and self._worker_states is None and bool(self.keys)

    def _new_dense(self, key: KeyArrays) -> KeyPolicy:
        self.keys[key.name] = key
        self.method.declare(key)
        return self._policy_of(key)

    def _add_sparse(self, key: SparseKey) -> SparseKey:
        if self._on_workers is not None and not self.sparse.keys:
            self._send_sparse_optimizer()
        self.sparse.add(key)
        return key

    def _policy_of(self, key: KeyArrays) -> KeyPolicy:
        """The one that a dense key is to have."""
        own = self.method.policy(key)
        if own is not None:
            return own
        if self._on_workers is None:
            return UpdatedOnServers(key, self._pushes, self.method)
        return UpdatedOnWorkers(key, self._pushes, self.method, self._on_workers)

    def _change(self, policy: KeyPolicy) -> None:
        """Gives a key another policy, which goes on with its value."""
        before = self.policies[policy.name]
        if before is policy:
            return
        value = mx.nd.empty(before.shape, mx.cpu(), before.dtype)
        before.pull([value], 0)
        policy.resume(value)
        self.policies[policy.name] = policy

    def _policy_for(self, name: Key, values: Values) -> KeyPolicy:
        """That of a key whose gradients are these: a dense key whose gradients turn out to be
        row-sparse becomes one of MXNet's store."""
        if stype_of(values[0]) != "default":
            self.turn_sparse(name)
        return self.policies[name]

    def turn_sparse(self, name: Key) -> None:
        """Has a dense key travel through MXNet's store from now on, if it does not yet."""
        if name not in self.keys:
            return
        key, sparse = self.keys[name], self._sparse_for(name)
        del self.keys[name]
        self._pushes.forget(name)
        states = self.states if self.on_servers and self._lane.rank == 0 else None
        if states is not None and key.dtype == np.float16 and states.optimizer.multi_precision:
            states = None  # MXNet's servers have weights in float32, and states of another form
        key.wait()  # until its last update is in the state
        taken = states.take(name) if states is not None else None
        self._change(self._add_sparse(sparse))
        if states is not None and taken is not None:
            states.give(name, *taken)

    def _sparse_for(self, name: Key, beside: Sequence[SparseKey] = ()) -> SparseKey:
        """What is to take a dense key's place; raises KVStoreError where nothing can."""
        key, position = self.keys[name], list(self.policies).index(name)
        like = mx.nd.empty(key.shape, mx.cpu(), key.dtype)
        return self.sparse.new(name, position, like, beside)

    def _check_push(self, values: Pairs, outs: Mapping[Key, Values]) -> None:
        """Raises for what cannot be pushed, before the first of these is."""
        turning: List[SparseKey] = []
        for name, arrays in values:
            self.find(name).check_push(arrays, outs.get(name))
            self.method.check(name, arrays[0])
            if name in self.keys and stype_of(arrays[0]) != "default":
                turning.append(self._sparse_for(name, turning))

    def _begin_on_servers(self, optimizer: mx.optimizer.Optimizer) -> ServerStates:
        self._send_optimizer(optimizer)  # raises where it cannot travel, before anything changes
        self.on_servers, self._on_workers, self._worker_states = True, None, None
        return ServerStates(
            optimizer,
            self._lane.worker,
            self.policies,
            weakref.WeakMethod(self._send_optimizer),
            self.method,
            decides=self._lane.rank == 0,
            wait_for_all=self._lane.wait_for_all,
        )

    def _begin_on_workers(self, optimizer: mx.optimizer.Optimizer) -> WorkerStates:
        states = self._worker_states = WorkerStates(optimizer, self.keys, self.method)
        self._update_on_workers(states)
        self.method.train_with(states)
        self._pushes.begin_on_workers(optimizer)
        if self.sparse.keys:
            self._send_sparse_optimizer()
        return states

    def _update_on_workers(self, updater: Callable[[Key, Any, Any], None]) -> None:
        if self._on_workers is not None:
            self._on_workers.function = updater
            return
        self._on_workers = WorkerUpdater(updater)
        for key in self.keys.values():
            self._change(self._policy_of(key))

    def _send_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        self._lane.set_optimizer(self.number, optimizer, sparse_only=False)
        self._pushes.begin_on_servers(optimizer)

    def _send_sparse_optimizer(self) -> None:
        """While workers update dense keys, the servers update sparse ones."""
        if self._worker_states is not None:
            optimizer = self._worker_states.optimizer
            self._pushes.begin_sparse(optimizer)
            self._lane.set_optimizer(self.number, optimizer, sparse_only=True)

    def _check_change(self, optimizer: mx.optimizer.Optimizer, on_servers: bool) -> None:
        """Servers cannot stop to update, and do not have the values that workers have updated."""
        from_servers = self.on_servers and not on_servers
        from_workers = self._on_workers is not None and on_servers and len(self.keys) > 0
        another = self.steps > self._untrained and self._optimizer is not None
        if from_servers or from_workers or (another and self._differs(optimizer)):
            self._refuse_change(type(optimizer).__name__)

    def _refuse_change(self, wanted: str) -> None:
        before = type(self._optimizer).__name__
        raise KVStoreError(
            f"the store's optimizer is {before}, which cannot be changed to {wanted} any more; "
            "open another store for it"
        )
