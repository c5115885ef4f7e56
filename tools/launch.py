#!/usr/bin/env python3
"""Start a distributed training job: a scheduler, servers and workers.

    python tools/launch.py -n 4 -s 2 python train.py --kv-store p3
    python tools/launch.py -n 4 -s 2 -H hosts --launcher ssh python train.py --kv-store p3

Runs from a checkout with the standard library alone: neither kvstore_ext nor mxnet is imported.
The same file, at the same path on every host, is also the far end of a job: with `--supervise`
it looks after one process, with `--join` it is what mpirun and srun start.
"""

from __future__ import annotations

import sys


def main() -> int:
    # Each end imports only what it needs, so that a supervisor starts fast and stays small.
    if sys.argv[1:2] == ["--supervise"]:
        from launcher.supervisor import main as supervise

        return supervise()
    if sys.argv[1:2] == ["--join"]:
        from launcher.agent import main as join

        return join(sys.argv[2:])
    from launcher.main import main as launch

    return launch(sys.argv[1:])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # Before the launcher takes care of signals it has nothing to end.
        sys.exit(130)
