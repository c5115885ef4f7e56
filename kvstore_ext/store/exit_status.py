"""With which status this process is about to end, which Python tells no handler at exit."""
from __future__ import annotations

import dis
import sys
import threading
from types import FrameType
from typing import Any, NoReturn, Optional

from .. import _core


class ExitStatus:
    """Follows the main thread from now on.

    A script ends at its last line, by an exception, which Python keeps as sys.last_value, or by
    SystemExit, of which it keeps nothing. So the core notes the status of each SystemExit that is
    made, and the last one counts if the main thread's outermost frame has not come to its end.
    """

    def __init__(self) -> None:
        self._outermost = _outermost_frame()
        _core.note_system_exits()
        leave = sys.exit

        def exit_by_exception(status: Any = None) -> NoReturn:
            raise SystemExit(status)  # at once: by itself Python makes one later, or never

        exit_by_exception.__doc__ = leave.__doc__
        sys.exit = exit_by_exception

    def of_exit(self) -> int:
        """The status of the SystemExit that the script has ended by; 0 if it has not, or runs."""
        if self._outermost is None or _outermost_frame() is self._outermost:
            return 0
        last = dis.opname[self._outermost.f_code.co_code[self._outermost.f_lasti]]
        return 0 if last.startswith("RETURN_") else _core.last_system_exit()

    def __call__(self) -> int:
        """The status of the process, for a handler at exit."""
        return 1 if uncaught() is not None else self.of_exit()


def uncaught() -> Optional[BaseException]:
    """What the script has ended by. An interactive interpreter, or a notebook, has gone on after
    what was raised last."""
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)


def _outermost_frame() -> Optional[FrameType]:
    """The main thread's; None where that has ended."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame
