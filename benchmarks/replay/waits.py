"""Operations of MXNet's engine that take a device's time and use no processor.

A device is handed its operations ahead of time and does one after the other. So an operation begins
when the one before ends, or when the last of what it needs has come. Neither the time that this
machine takes to hand it over nor the time by which a sleeping thread wakes late adds up.

The engine has threads of its own for each number of a CPU, in a fork one. A device's operations and
those that note arrivals have numbers that no array has, so that they hold up nothing else: as on a
host whose device is a GPU, MXNet's own stores share the thread of number 0 with the updates alone.
"""
from __future__ import annotations

import ctypes
import time
from typing import Any, List, Optional, Sequence

import mxnet as mx
from mxnet.base import _LIB, check_call

_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Context(ctypes.Structure):
    """MXNet's Context."""

    _fields_ = [("device", ctypes.c_int), ("number", ctypes.c_int32)]


_CPU = 1  # as MXNet numbers kinds of devices
_OF_DEVICE, _OF_ARRIVALS = 1, 2  # beside 0, which is everything else's


class Operation:
    """One that the engine runs, as soon as it may read and write what it is to.

    Parameters
    ----------
    number : int
        Of the CPU whose thread runs it.
    """

    def __init__(self, number: int) -> None:
        self._context = _Context(_CPU, number)
        self._function = _Function(self._run)  # kept, since the engine calls it later

    def push(self, reads: Sequence[mx.nd.NDArray], writes: Sequence[mx.nd.NDArray]) -> None:
        """Hands it to the engine and returns at once."""
        check_call(
            _LIB.MXEnginePushSyncND(
                self._function, None, None, ctypes.byref(self._context),
                _handles(reads), len(reads), _handles(writes), len(writes),
                None, 0, b"replay",
            )
        )

    def _run(self, _context: Any, _parameter: Any) -> None:
        raise NotImplementedError


class Arrival(Operation):
    """Notes when all that it reads has come.

    Attributes
    ----------
    seconds : float
        By time.perf_counter(); 0 before the first time.
    """

    def __init__(self) -> None:
        super().__init__(_OF_ARRIVALS)
        self.seconds = 0.0

    def _run(self, _context: Any, _parameter: Any) -> None:
        self.seconds = time.perf_counter()


class Update(Operation):
    """Of a weight by a sum, as the engine knows it: it reads one and writes the other.

    It takes no time. A GPU takes a few milliseconds for all of a network. This machine's
    processors, which play all GPUs, would be busy with it for seconds, and with nothing else.
    """

    def __init__(self) -> None:
        super().__init__(_OF_ARRIVALS)

    def _run(self, _context: Any, _parameter: Any) -> None:
        pass


class Device:
    """What the waits of a network have in common: until when it is busy."""

    def __init__(self) -> None:
        self.free = time.perf_counter()


class Wait(Operation):
    """An operation of a device. What it reads and writes lets the engine run it after the one
    before, and after the arrival.

    Parameters
    ----------
    device : Device
    seconds : float
        That the device takes for it.
    arrival : Arrival, optional
        Of what may come later than the operation before ends.
    """

    def __init__(self, device: Device, seconds: float, arrival: Optional[Arrival] = None) -> None:
        super().__init__(_OF_DEVICE)
        self._device, self._seconds, self._arrival = device, seconds, arrival

    def _run(self, _context: Any, _parameter: Any) -> None:
        arrived = self._arrival.seconds if self._arrival else 0.0
        self._device.free = max(self._device.free, arrived) + self._seconds
        time.sleep(max(0.0, self._device.free - time.perf_counter()))


def _handles(arrays: Sequence[mx.nd.NDArray]) -> Any:
    handles: List[Any] = [array.handle for array in arrays]
    return (ctypes.c_void_p * len(handles))(*handles)
