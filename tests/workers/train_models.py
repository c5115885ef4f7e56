"""A worker that trains a step of models through a store: STORE WAY MODEL,MODEL..."""
from __future__ import annotations

import sys

import kvstore_ext  # noqa: F401
from every_model import Way, check

check(sys.argv[1], Way.parse(sys.argv[2]), sys.argv[3].split(","))
print("passed")
