"""What has to happen before mxnet is imported: engine settings, and what newer Pythons lack."""
from __future__ import annotations

import builtins
import importlib.util
import os
from contextlib import contextmanager
from typing import Iterator

NEEDED_MXNET = "1.9.1"

# mxnet reads them once, when it is imported. Without the first, MXNet runs up to 15 layers
# as one operation, which waits for the parameters of all of them: nothing would overlap with the
# forward pass. With the second above 1, gluon.Trainer updates four parameters in one operation.
ENGINE_VARIABLES = {
    "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "1",
    "MXNET_OPTIMIZER_AGGREGATION_SIZE": "1",
}


def restore_numpy_aliases() -> None:
    """Gives NumPy 1.24 to 1.26 back the names that mxnet uses and NumPy 1.24 removed."""
    import numpy

    for name in ("bool", "int", "float", "complex", "object", "str"):
        if name not in numpy.__dict__:
            setattr(numpy, name, getattr(builtins, name))


def check_distutils() -> None:
    """Raises an ImportError that says what to install where mxnet would not find distutils."""
    if importlib.util.find_spec("distutils") is None:
        raise ImportError(
            "mxnet 1.9.1 needs distutils, which Python 3.12 no longer has: pip install setuptools"
        )


def check_version(found: str) -> None:
    """Raises an ImportError for another version than the one whose ABI the core is made for."""
    if found != NEEDED_MXNET:
        raise ImportError(f"kvstore_ext needs mxnet {NEEDED_MXNET}; found mxnet {found}")


def prepare_engine() -> None:
    """Sets what overlapping needs, where the user has not set it otherwise."""
    for name, value in ENGINE_VARIABLES.items():
        os.environ.setdefault(name, value)


def engine_overlaps() -> bool:
    """Whether MXNet was told to run layers one by one before it was imported."""
    name = "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN"
    return os.environ.get(name) == ENGINE_VARIABLES[name]


@contextmanager
def hidden_role() -> Iterator[None]:
    """Takes DMLC_ROLE away, since importing mxnet with it runs the stock server and exits."""
    role = os.environ.pop("DMLC_ROLE", None)
    try:
        yield
    finally:
        if role is not None:
            os.environ["DMLC_ROLE"] = role
