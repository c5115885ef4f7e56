"""Files of results, a JSON line each, that a rerun goes on from and several processes may share."""
from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Dict, List


def read(file: Path) -> List[Dict[str, Any]]:
    """The lines of a results file, but for a last one that was not written to its end; none where
    there is no file."""
    return [json.loads(line) for line in _whole(file).splitlines()] if file.exists() else []


def append(file: Path, line: Dict[str, Any]) -> None:
    """Adds a line, in the place of a last one that was not written to its end."""
    with file.open("a") as results:
        # Somebody else's last line may be on its way at this moment.
        fcntl.flock(results, fcntl.LOCK_EX)
        os.truncate(file, len(_whole(file).encode()))
        results.write(json.dumps(line) + "\n")
        results.flush()


def _whole(file: Path) -> str:
    text = file.read_text()
    return text[: text.rfind("\n") + 1]
