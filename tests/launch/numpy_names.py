"""Puts back the names that MXNet 1.9.1 reads on import, and which NumPy 1.24 has taken away."""

from __future__ import annotations

import numpy as np

for name, kind in {"bool": bool, "int": int, "float": float, "object": object}.items():
    if name not in np.__dict__:
        setattr(np, name, kind)
