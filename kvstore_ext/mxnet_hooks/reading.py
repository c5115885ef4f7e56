"""Tells when a script reads parameters, as every forward pass does; see lane/script_reads.py."""
from __future__ import annotations

from typing import Any, Callable

import mxnet as mx

from ..lane.script_reads import script_reads


def tell_of_reading() -> None:
    """Has Gluon's parameters and Module's executors tell from now on."""
    for owner, name in ((mx.gluon.Parameter, "data"), (mx.executor.Executor, "forward")):
        setattr(owner, name, _telling(getattr(owner, name)))


def _telling(read: Callable[..., Any]) -> Callable[..., Any]:
    def tell_and_read(*arguments: Any, **named: Any) -> Any:
        script_reads.tell()
        return read(*arguments, **named)

    tell_and_read.__doc__ = read.__doc__
    return tell_and_read
