"""What a process that has stores does when it forks, and what becomes of them in its child.

MXNet waits for all operations before a fork. Python holds its lock meanwhile, so that those for
which a thread of Python's is to do something would never end. So the core waits for them before,
without the lock (csrc/bindings/forks.cc), whoever forks. By then os.fork has locked imports, too,
which such a thread may need: before that they are waited for here.

A child has none of the stores' threads: what it does with one would never end, nor would leaving
the job. So its stores are closed from the start, and it leaves as it came.
"""
from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, List

import mxnet as mx

from .. import _core

if TYPE_CHECKING:
    import weakref


def prepare_for_forks(
    stores: weakref.WeakSet[Any], failures: List[Any], left_behind: List[object]
) -> None:
    """To be called once a process.

    Parameters
    ----------
    stores : weakref.WeakSet
        Those that are open, now and later.
    failures : list
        Theirs, which are none of a child's.
    left_behind : list
        Lanes that cannot be ended, such as those which a child finds: they would wait for threads
        that it has not got.
    """

    def wait() -> None:
        for lane in {store._lane for store in stores if not store.closed}:
            with contextlib.suppress(mx.MXNetError):  # the script's to read, with its arrays
                lane.wait_for_all()

    def forget() -> None:
        lanes = {store._lane for store in stores if not store.closed}
        for lane in lanes:
            lane.forget_stores()
        left_behind.extend(lanes)
        for store in stores:
            store.closed = True
        stores.clear()
        failures.clear()

    _core.wait_before_forks()
    os.register_at_fork(before=wait, after_in_child=forget)
