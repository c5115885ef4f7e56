"""Where things lie in the repository."""
from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = ROOT / "tests" / "support" / "workers"  # what the workers of jobs run


def python_path(*directories: Path) -> str:
    """PYTHONPATH for a process that finds its modules here first, then in the repository."""
    return os.pathsep.join(map(str, [*directories, ROOT]))
