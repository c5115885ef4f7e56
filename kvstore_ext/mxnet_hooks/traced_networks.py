"""Layers of hybridized Gluon networks for a trace: MXNet itself tells of their operators."""
from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

import mxnet as mx

from .. import _core


class TracedNetworks:
    """Knows each network once MXNet has compiled it, and has the core watch all of them."""

    def __init__(self) -> None:
        self._blocks: weakref.WeakSet = weakref.WeakSet()
        self._worker: Optional[_core.Worker] = None

    def install(self) -> None:
        """Has HybridBlock._build_cache, after which a block has its CachedOp, tell of the block."""
        build: Callable[..., None] = mx.gluon.HybridBlock._build_cache

        def build_cache(block: mx.gluon.HybridBlock, *arguments: Any) -> None:
            build(block, *arguments)
            self._blocks.add(block)
            self._watch(block)

        mx.gluon.HybridBlock._build_cache = build_cache

    def look(self, worker: Optional[_core.Worker]) -> None:
        """Watches for this worker, those that are compiled already and those to come."""
        self._worker = worker
        for block in list(self._blocks):
            self._watch(block)

    def _watch(self, block: mx.gluon.HybridBlock) -> None:
        if self._worker is None or block._cached_op is None or has_fixed_shapes(block):
            return
        self._worker.watch_network(block._cached_op.handle.value)


def has_fixed_shapes(block: mx.gluon.HybridBlock) -> bool:
    """Whether it is hybridized with static_shape=True: MXNet then hands the engine operations that
    it has made before, and tells of few."""
    return bool(dict(block._flags).get("static_shape"))
