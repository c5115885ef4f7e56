"""A server that says in the end how much it held, and how much its process grew, at most."""
from __future__ import annotations

import atexit
import sys
import threading
from pathlib import Path

from kvstore_ext.server import process

INTERVAL = 0.001  # seconds


def status(name: str) -> int:
    """A figure of this process from Linux, in bytes: VmRSS now, VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


class MeasuredServer(process.P3Server):
    """Looks at itself again and again."""

    def run(self) -> None:
        ended = threading.Event()
        most = 0

        def watch() -> None:
            nonlocal most
            while not ended.wait(INTERVAL):
                most = max(most, self._lane.held_bytes())

        def tell() -> None:
            ended.set()
            watcher.join()
            print(f"held at most {most} bytes, grew by {status('VmHWM') - before} bytes")
            print(f"has scikit-learn: {'sklearn' in sys.modules}")

        watcher = threading.Thread(target=watch, name="measure memory")
        watcher.start()
        atexit.register(tell)  # the process ends within run
        before = status("VmRSS")
        super().run()


if __name__ == "__main__":
    process.P3Server = MeasuredServer  # type: ignore[misc]
    sys.exit(process.main())
