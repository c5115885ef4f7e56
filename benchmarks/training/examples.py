"""Makes the modules of examples/ known, which find each other by their plain names."""
from __future__ import annotations

import sys
from pathlib import Path

_DIRECTORY = str(Path(__file__).resolve().parents[2] / "examples")

if _DIRECTORY not in sys.path:
    sys.path.append(_DIRECTORY)
