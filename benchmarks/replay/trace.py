"""A network's trace: `kvstore_ext.predict.network`, whose predictions are made of the same layers.

It is loaded by its place. The processes of peers load it too, and kvstore_ext's own `__init__`
would change MXNet in them.
"""
from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_FILE = Path(__file__).parents[2] / "kvstore_ext" / "predict" / "network.py"
_NAME = "kvstore_ext.predict.network"  # where it is imported already, it is that one

if _NAME not in sys.modules:
    _spec = spec_from_file_location(_NAME, _FILE)
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules[_NAME] = module_from_spec(_spec)  # dataclasses look it up
    _spec.loader.exec_module(sys.modules[_NAME])
_module = sys.modules[_NAME]

TRACES, FRAMES = _module.NETWORKS, _module.FRAMES
Layer, Trace, TraceError = _module.Layer, _module.Network, _module.NetworkError
load, digest, names = _module.load, _module.digest, _module.names
