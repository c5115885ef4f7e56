"""The file by which the check and its probes start, with the standard library alone.

    python kvstore_ext/check/__main__.py -H hosts

With `--probe` it is what the launcher's supervisors run on the hosts.
"""
from __future__ import annotations

import os
import runpy
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    run = runpy.run_path(os.path.join(_PACKAGE, "by_place.py"))["run"]
    if sys.argv[1:2] == ["--probe"]:
        run("check.probe")
    run("check.main", sys.argv[1:])
