"""python -m kvstore_ext.server: a server or the scheduler of a job, as DMLC_ROLE says."""
from __future__ import annotations

from .process import main

main()
