"""A store's part of a run, for snapshots: its keys' values, its optimizer, its compression."""
from __future__ import annotations

from typing import Any, Callable, Dict, List

import mxnet as mx
import numpy as np

from ..compression import differing
from ..copies import copied, resume
from ..errors import KVStoreError
from ..keys.names import Key
from ..lane.lane import Lane
from ..optimizer.server_values import expect_rows, put_value
from ..protocol.carries import NOBODY
from ..snapshots.part import About, Part, SnapshotError
from .key_router import KeyRouter
from .sparse_key import SparseKey
from .summed_key import UpdatedOnServers, UpdatedOnWorkers


class StoreRun(Part):
    """What a store has, here and on its servers.

    Values are those of keys that it updates: without an optimizer they are sums, which the next
    step overwrites. What servers have is fetched by rank 0, and put back by it, into whatever
    servers there are; meanwhile the others wait for its next push.

    Parameters
    ----------
    router, lane
        The store's.
    at_hand
        Values that other parts have, by key.
    """

    name = "store"

    def __init__(
        self, router: KeyRouter, lane: Lane, at_hand: Callable[[], Dict[Key, mx.nd.NDArray]]
    ) -> None:
        self._router = router
        self._lane = lane
        self._at_hand = at_hand

    @property
    def steps(self) -> int:
        return self._router.steps

    def about(self) -> About:
        router = self._router
        found = {
            f"key {name!r}": f"of shape {policy.shape}, {np.dtype(policy.dtype).name}"
            for name, policy in router.policies.items()
            if self._is_updated(policy) or router.method.compression is not None
        }
        found["compression"] = repr(router.method.compression)
        found["an optimizer"] = "none" if router.states is None else _described(router)
        return found

    def check(self, saved: About) -> None:
        # Before its first key a store can still become anything.
        if not self._router.policies:
            return
        before, now = saved.get("compression", ""), repr(self._router.method.compression)
        if before and before != now:
            before, now = differing(before, now)
            raise SnapshotError(f"it was taken with {before}; this run has {now}")
        super().check(saved)

    def shared(self) -> Dict[str, Any]:
        self._refuse_sparse()
        method = self._router.method
        found: Dict[str, Any] = {"values": self._values(), "sparse": self._sparse()}
        if self._router.states is not None and not method.trains_on_workers:
            found["optimizer"] = self._router.states.saved()
        return found

    def own(self, rank: int) -> Dict[str, Any]:
        self._refuse_sparse()
        method = self._router.method
        found: Dict[str, Any] = {"carried": method.fetch(whole=rank == 0)}
        if self._router.states is not None and method.trains_on_workers:
            found["optimizer"] = self._router.states.saved()
        return found

    def put_back(self, shared: Dict[str, Any], own: Dict[str, Any], is_own: bool) -> None:
        if not self._router.policies and (shared["values"] or own["carried"]):
            raise KVStoreError("restore comes too early: no key has its first value yet")
        for name in shared["sparse"]:
            self._router.turn_sparse(name)  # as its first row-sparse gradient did
        self._refuse_sparse()
        self._put_values(shared["values"])
        carried = own["carried"]
        if not is_own:
            carried = {name: {**entry, "rank": NOBODY} for name, entry in carried.items()}
        self._router.method.put_back(dict(carried))
        saved = shared.get("optimizer") or own.get("optimizer")
        if saved is not None:
            states, optimizer = saved
            resume(self._router.states.optimizer, optimizer)
            begins_anew = self._router.method.trains_on_workers and not is_own
            self._router.states.resume({} if begins_anew else states)
        self._lane.barrier()  # nobody pushes before the servers have it all

    def _values(self) -> Dict[Key, mx.nd.NDArray]:
        found, at_hand = {}, self._at_hand()
        for name, policy in self._router.policies.items():
            if not self._is_updated(policy):
                continue
            if isinstance(policy, SparseKey):
                found[name] = policy.value()
            elif name in at_hand:
                found[name] = copied(at_hand[name])
            else:
                found[name] = mx.nd.empty(policy.shape, mx.cpu(), policy.dtype)
                policy.pull([found[name]], 0)
        return found

    def _put_values(self, values: Dict[Key, mx.nd.NDArray]) -> None:
        on_servers, sparse = [], []
        for name, value in values.items():
            policy = self._router.policies[name]
            if isinstance(policy, UpdatedOnWorkers):
                policy.overwrite(value)
            elif isinstance(policy, SparseKey):
                sparse.append(policy)
            else:
                on_servers.append(name)
                # The last result, which nobody may have asked for, is no answer any more.
                policy.pull([mx.nd.zeros_like(value)], 0)
        self._lane.wait_for_all()
        self._lane.barrier()
        if self._lane.rank == 0:
            for name in on_servers:
                put_value(self._lane.worker, self._router.policies[name], values[name])
            for policy in sparse:
                expect_rows(self._lane.worker, policy)
        self._lane.barrier()
        for policy in sparse:
            policy.overwrite(values[policy.name])
        self._lane.wait_for_all()

    def _is_updated(self, policy: Any) -> bool:
        on_servers = isinstance(policy, (UpdatedOnServers, SparseKey)) and self._router.on_servers
        return on_servers or isinstance(policy, UpdatedOnWorkers)

    def _sparse(self) -> List[Key]:
        """Keys with row-sparse weights or gradients."""
        return [name for name in self._router.policies if name not in self._router.keys]

    def _refuse_sparse(self) -> None:
        """Their states lie with the servers alone, which keep those of float16 to themselves."""
        policies = self._router.policies
        for name in self._sparse():
            if not self._router.on_servers or policies[name].dtype == np.float16:
                raise KVStoreError(
                    f"key {name!r} has row-sparse arrays of {np.dtype(policies[name].dtype).name}; "
                    "a snapshot takes such keys of float32 and float64, with an optimizer on the "
                    "servers"
                )


def _described(router: KeyRouter) -> str:
    where = "on the servers" if router.on_servers else "on the workers"
    return f"{type(router.states.optimizer).__name__} {where}"
