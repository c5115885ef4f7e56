"""Where the script has come to, for who watches the job: it reads parameters, and may have to wait.

mxnet_hooks tells of it (mxnet_hooks/reading.py), and the worker's figures take it in.
"""
from __future__ import annotations

import weakref
from typing import Callable, Optional

from .. import _core


class ScriptReads:
    """Tells the worker, if one is watched. The script's threads call it."""

    def __init__(self) -> None:
        self._worker: Callable[[], Optional[_core.Worker]] = lambda: None

    def watch(self, worker: _core.Worker) -> None:
        """Begins; the worker is not kept alive."""
        self._worker = weakref.ref(worker)

    def tell(self) -> None:
        """To be called before parameters are read, as for a forward pass."""
        worker = self._worker()
        if worker is not None:
            worker.script_reads()


script_reads = ScriptReads()
