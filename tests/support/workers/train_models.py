"""A worker that trains a step of models through stores: WAY MODEL,MODEL... STORE,STORE..."""
from __future__ import annotations

import sys

import kvstore_ext  # noqa: F401

from tests.support.tasks.every_model import Case, Way, check

check(Case(Way.parse(sys.argv[1]), sys.argv[2].split(","), sys.argv[3].split(",")))
print("passed")
