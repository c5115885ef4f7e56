"""Operations of MXNet's engine that take a given time and use no processor."""
from __future__ import annotations

import ctypes
import time
from typing import Any, List, Sequence

import mxnet as mx
from mxnet.base import _LIB, check_call

_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Context(ctypes.Structure):
    """MXNet's Context."""

    _fields_ = [("device", ctypes.c_int), ("number", ctypes.c_int32)]


_CPU = _Context(1, 0)


class Wait:
    """An operation that begins once the engine may read and write what it is to, and then sleeps.

    Parameters
    ----------
    seconds : float
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._function = _Function(self._sleep)  # kept, since the engine calls it later

    def push(self, reads: Sequence[mx.nd.NDArray], writes: Sequence[mx.nd.NDArray]) -> None:
        """Hands it to the engine and returns at once."""
        check_call(
            _LIB.MXEnginePushSyncND(
                self._function, None, None, ctypes.byref(_CPU),
                _handles(reads), len(reads), _handles(writes), len(writes),
                None, 0, b"replay",
            )
        )

    def _sleep(self, _context: Any, _parameter: Any) -> None:
        time.sleep(self._seconds)


def _handles(arrays: Sequence[mx.nd.NDArray]) -> Any:
    handles: List[Any] = [array.handle for array in arrays]
    return (ctypes.c_void_p * len(handles))(*handles)
