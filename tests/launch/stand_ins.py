"""Programs in the place of ssh and rsync, which run on this host what is meant for another."""

from __future__ import annotations

import os
from pathlib import Path

# A host whose name begins with "gone" cannot be reached, as ssh says it.
# What runs on one of the others finds its name in $host.
_REFUSED = 'echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255'
_SSH = f"""#!/bin/sh
while [ "$1" != -- ]; do shift; done
export host=$2
case $host in gone*) {_REFUSED};; esac
echo "$host" >>"${{0%/*}}/reached"
exec sh -c "$3"
"""
_RSYNC = f"""#!/bin/sh
for last; do :; done
host=${{last%%:*}}
case $host in gone*) {_REFUSED};; esac
echo "$@" >>copies
"""


def stand_ins(directory: Path) -> dict[str, str]:
    """Makes both in a directory, and returns the environment in which they are found first.

    The file `reached` beside them gets a line for each supervisor: the name of its host.
    """
    directory.mkdir()
    for name, script in (("ssh", _SSH), ("rsync", _RSYNC)):
        (directory / name).write_text(script)
        (directory / name).chmod(0o755)
    return {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}
