"""kvstore-ext --join: a script that knows nothing of store.join may have uneven batches.

A worker joins where its batches end: when a DataLoader or a DataIter has no more, after pushes
since it gave its first. A DataIter that is begun again gives its first anew, unless it is trained
with: a test may have been broken off. So every epoch of a usual script ends on all workers
together, and loaders that are only tested with do not count. A script that makes its batches
otherwise joins once, when the store that it has pushed last closes.
"""
from __future__ import annotations

from typing import Any, Callable, ClassVar, Iterator, Optional

import mxnet as mx
from mxnet import gluon

from ..store.joining_store import JoiningStore

_PASS = "_kvstore_ext_pass"  # where a DataIter has its own


def join_where_batches_end() -> None:
    """From now on, and for all stores of this process."""
    JoiningStore.joins_at_close = True
    gluon.data.DataLoader.__iter__ = _joining_loader(gluon.data.DataLoader.__iter__)
    mx.io.DataIter.__iter__ = _beginning_iterator(mx.io.DataIter.__iter__)
    mx.io.DataIter.__next__ = _joining_iterator(mx.io.DataIter.__next__)


class _Pass:
    """One time through a script's batches. What is pushed counts for the one that has given the
    process's last batch."""

    _last: ClassVar[Optional[_Pass]] = None

    def __init__(self) -> None:
        self._before = self._latest = JoiningStore.last_push_of_process()

    def go_on(self) -> None:
        """Another batch is asked for."""
        _Pass._settle()
        _Pass._last = self

    @property
    def trains(self) -> bool:
        """Whether anything was pushed after one of its batches."""
        _Pass._settle()
        return self._latest > self._before

    @classmethod
    def _settle(cls) -> None:
        if cls._last is not None:
            cls._last._latest = JoiningStore.last_push_of_process()

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
        begun.go_on()
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


def _beginning_iterator(iterate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def beginning(iterator: mx.io.DataIter) -> Any:
        begun = vars(iterator).get(_PASS)
        if begun is not None and not begun.trains:
            del vars(iterator)[_PASS]
        return iterate(iterator)

    return beginning


def _joining_iterator(advance: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def joining(iterator: mx.io.DataIter) -> Any:
        known = vars(iterator)
        known.setdefault(_PASS, _Pass()).go_on()
        try:
            return advance(iterator)
        except StopIteration:
            known.pop(_PASS).end()
            raise

    return joining
