"""A network's trace: `kvstore_ext.predict.network`, whose predictions are made of the same layers.

It is loaded by its place. The processes of peers load it too, and kvstore_ext's own `__init__`
would change MXNet in them.
"""
from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

_DIRECTORY = Path(__file__).parents[2] / "kvstore_ext" / "predict"
_NAME = "kvstore_ext.predict"  # where it is imported already, it is that one


def of_predict(module: str) -> Any:
    """A module of kvstore_ext.predict that needs nothing of other rooms.

    `from . import name` in one of them would import kvstore_ext; `from .name import` does not.
    """
    if _NAME not in sys.modules:
        spec = spec_from_file_location(
            _NAME, _DIRECTORY / "__init__.py", submodule_search_locations=[str(_DIRECTORY)]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules[_NAME] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[_NAME])
    return import_module(f"{_NAME}.{module}")


_module = of_predict("network")
TRACES, FRAMES = _module.NETWORKS, _module.FRAMES
Layer, Trace, TraceError = _module.Layer, _module.Network, _module.NetworkError
load, digest, names = _module.load, _module.digest, _module.names
