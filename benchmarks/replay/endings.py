"""How a command that measures ends: in one line, with its clusters removed."""
from __future__ import annotations

import contextlib
import signal
import sys
from typing import Iterator, Type

from benchmarks.cluster import ClusterError
from benchmarks.replay.forking import InterpreterError
from benchmarks.replay.measurement import ResultsError


@contextlib.contextmanager
def in_one_line(*errors: Type[Exception]) -> Iterator[None]:
    """Exits with what these errors say, and those of measuring, and when somebody ends it."""
    # Without it clusters would stay.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    try:
        yield
    except (ResultsError, ClusterError, InterpreterError, *errors) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; run it again to go on")
