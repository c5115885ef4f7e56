"""python -m kvstore_ext train.py: the command kvstore-ext, where this package can be imported."""
from __future__ import annotations

from kvstore_run import main

main()
