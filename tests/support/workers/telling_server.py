"""A server or scheduler that tells how much of its heap is live: in a directory, of SOAK_HEAPS."""
from __future__ import annotations

import os
import sys

from kvstore_ext.server import process

from tests.support import heap

if __name__ == "__main__":
    heap.tell(os.environ["SOAK_HEAPS"])
    sys.exit(process.main())
