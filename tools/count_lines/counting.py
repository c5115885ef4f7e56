"""Has an interpreter count the lines that it runs: a .pth file by measure.sh calls `begin`."""
import ctypes
import os
import sys

CORE = "kvstore_ext._core"


def begin(checkout: str) -> None:
    """Counts until the process ends, in any way but by a signal; forks count for themselves."""
    import coverage

    os.environ["CHECKOUT"] = checkout
    os.environ["COVERAGE_PROCESS_START"] = f"{checkout}/tools/count_lines/counting.ini"
    coverage.process_startup()
    end_at_once = os._exit

    def end(status: int) -> None:
        _write_counts_of_core()
        end_at_once(status)

    os._exit = end  # type: ignore[assignment]


def _write_counts_of_core() -> None:
    if CORE in sys.modules:
        ctypes.CDLL(sys.modules[CORE].__file__).kvstore_ext_write_counts()
