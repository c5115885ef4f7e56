"""python -m kvstore_ext train.py: runs a script or module in which mx.kv.create('p3') works."""
from __future__ import annotations

import sys

from .mxnet_hooks.runner import main

main(sys.argv[1:])
