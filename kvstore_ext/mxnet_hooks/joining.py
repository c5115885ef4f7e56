"""kvstore-ext --join: a script that knows nothing of store.join may have uneven batches.

A worker joins where its batches end: when a DataLoader or a DataIter has no more, after pushes
since it gave its first. So every epoch of a usual script ends on all workers together, and loaders
that are only tested with do not count. A script that makes its batches otherwise joins once, when
the store that it has pushed last closes.
"""
from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

import mxnet as mx
from mxnet import gluon

from ..store.joining_store import JoiningStore


def join_where_batches_end() -> None:
    """From now on, and for all stores of this process."""
    JoiningStore.joins_at_close = True
    gluon.data.DataLoader.__iter__ = _joining_loader(gluon.data.DataLoader.__iter__)
    mx.io.DataIter.__next__ = _joining_iterator(mx.io.DataIter.__next__)


class _Pass:
    """One time through a script's batches."""

    def __init__(self) -> None:
        self._before = JoiningStore.last_push_of_process()

    def end(self) -> None:
        if JoiningStore.last_push_of_process() > self._before:
            JoiningStore.join_of_process()


class _Batches:
    """What a DataLoader's iterator gives, and all else that it has."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self._pass: Optional[_Pass] = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        begun = self._pass = self._pass or _Pass()
        try:
            return next(self._batches)
        except StopIteration:
            self._pass = None
            begun.end()
            raise

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)


def _joining_loader(iterate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def joining(loader: gluon.data.DataLoader) -> _Batches:
        return _Batches(iterate(loader))

    return joining


def _joining_iterator(advance: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def joining(iterator: mx.io.DataIter) -> Any:
        known = vars(iterator)
        known.setdefault("_kvstore_ext_pass", _Pass())
        try:
            return advance(iterator)
        except StopIteration:
            known.pop("_kvstore_ext_pass").end()
            raise

    return joining
