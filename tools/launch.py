#!/usr/bin/env python3
# PYTHON_ARGCOMPLETE_OK
"""Start a distributed training job: a scheduler, servers and workers.

    python tools/launch.py -n 4 -s 2 python train.py --kv-store p3
    python tools/launch.py -n 4 -s 2 -H hosts --launcher ssh python train.py --kv-store p3

The command kvstore-launch for a checkout that is not installed or not even compiled: neither
kvstore_ext nor mxnet is imported.
"""

from __future__ import annotations

import os
import runpy

if __name__ == "__main__":
    checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    entry = os.path.join(checkout, "kvstore_ext", "launcher", "__main__.py")
    runpy.run_path(entry, run_name="__main__")
