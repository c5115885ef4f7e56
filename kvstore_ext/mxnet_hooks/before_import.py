"""What has to happen before mxnet is imported: engine settings, and what newer Pythons lack.

Where something has to be installed first, an ImportError says in one line what to type. Its name is
the package's, by which kvstore_run.py tells it from the errors of other imports.
"""
from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional

from . import operators
from .plain_distutils import has_distutils
from .spared_imports import spared_imports

NEEDED_MXNET = "1.9.1"
# Those that mxnet itself can be imported with; Python 3.12 begins at NumPy 1.26, where only
# `import kvstore_ext` can.
NEEDED_NUMPY = "numpy<1.24" if sys.version_info < (3, 12) else "numpy<2"

# mxnet reads the first when it is imported, and the second for each optimizer. Without the first it
# runs up to 15 layers as one operation, which waits for the parameters of all of them, so that
# nothing would overlap with the forward pass. With the second above 1, gluon.Trainer updates four
# parameters in one operation.
_BULK = "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN"  # with _FWD and _BWD behind it that goes first
BULK_OF_BACKWARD = f"{_BULK}_BWD"
ENGINE_VARIABLES = {
    _BULK: "1",
    "MXNET_OPTIMIZER_AGGREGATION_SIZE": "1",
}


def restore_numpy_aliases() -> None:
    """Gives NumPy 1.24 to 1.26 back the names that mxnet uses and NumPy 1.24 removed."""
    import numpy

    for name in ("bool", "int", "float", "complex", "object", "str"):
        if name not in numpy.__dict__:
            setattr(numpy, name, getattr(builtins, name))


def check_compiled(package: str, directory: str) -> None:
    """Raises an ImportError where the package in this directory has no core for this Python."""
    if importlib.util.find_spec("._core", package) is None:
        raise _unfit(
            f"kvstore_ext in {directory} is not compiled for {sys.executable}: pip install -e "
            f"{os.path.dirname(directory)}; where another one is installed, run kvstore-ext "
            "SCRIPT, or start Python in another directory"
        )


def check_requirements() -> None:
    """Raises an ImportError that says what to install where mxnet could not be imported."""
    if importlib.util.find_spec("mxnet") is None:
        raise _unfit(
            f"kvstore_ext needs mxnet {NEEDED_MXNET}: pip install mxnet=={NEEDED_MXNET} "
            f"'{NEEDED_NUMPY}' (for GPUs mxnet-cu112=={NEEDED_MXNET})"
        )
    import numpy

    if int(numpy.__version__.split(".")[0]) >= 2:
        raise _unfit(
            f"mxnet {NEEDED_MXNET} needs NumPy below 2, found {numpy.__version__}: "
            f"pip install '{NEEDED_NUMPY}'"
        )
    if not has_distutils():
        raise _unfit(
            f"mxnet {NEEDED_MXNET} needs distutils, which Python 3.12 no longer has: "
            "pip install setuptools"
        )


def check_version(found: str) -> None:
    """Raises an ImportError for another version than the one whose ABI the core is made for."""
    if found != NEEDED_MXNET:
        raise _unfit(
            f"kvstore_ext needs mxnet {NEEDED_MXNET}; found mxnet {found}: "
            f"pip install mxnet=={NEEDED_MXNET} (for GPUs mxnet-cu112=={NEEDED_MXNET})"
        )


def _unfit(reason: str) -> ImportError:
    return ImportError(reason, name=__name__.split(".")[0])


def prepare_engine() -> None:
    """Sets what overlapping needs, where the user has not set it otherwise."""
    for name, value in ENGINE_VARIABLES.items():
        os.environ.setdefault(name, value)


def engine_overlaps() -> bool:
    """Whether MXNet was told to run layers one by one before it was imported."""
    others = any(name.startswith(_BULK) for name in in_the_way())
    return os.environ.get(_BULK) == ENGINE_VARIABLES[_BULK] and not others


def in_the_way() -> Dict[str, str]:
    """Variables by which the user has told MXNet otherwise, with their values. Not so with the
    backward pass alone in bulks, as GPUs may need it: gradients of a bulk leave together then."""
    needed = {**ENGINE_VARIABLES, f"{_BULK}_FWD": ENGINE_VARIABLES[_BULK]}
    return {
        name: os.environ[name]
        for name, value in needed.items()
        if os.environ.get(name, value) != value
    }


def serves_scheduler() -> bool:
    """Whether this process is a job's scheduler and nothing else, as kvstore_run.py runs it."""
    program = os.path.basename(sys.argv[0])
    return (
        os.environ.get("DMLC_ROLE") == "scheduler"
        and program in ("kvstore_run.py", "kvstore-ext")
        and sys.argv[1:2] == ["--serve"]
    )


def import_mxnet() -> Any:
    """MXNet: for a scheduler what finds its library, for others of a job with stand-ins for the
    functions of operators; and for all without packages that few scripts need."""
    alone = serves_scheduler()
    with hidden_role() as role:
        if role is None or "mxnet" in sys.modules:
            with spared_imports():
                return importlib.import_module("mxnet")
        found = importlib.util.find_spec("mxnet")
        assert found is not None
        assert found.loader is not None
        package: Any = importlib.util.module_from_spec(found)
        sys.modules["mxnet"] = package
        base: Any = importlib.import_module("mxnet.base")
        package.libinfo = importlib.import_module("mxnet.libinfo")
        package.__version__ = package.libinfo.__version__
        if not alone:
            for name in ("_init_op_module", "_init_np_op_module"):
                setattr(base, name, operators.making_when_called(getattr(base, name)))
            with spared_imports():
                found.loader.exec_module(package)
        return package


@contextmanager
def hidden_role() -> Iterator[Optional[str]]:
    """Takes DMLC_ROLE away, and gives it: importing mxnet with it would run the stock server."""
    role = os.environ.pop("DMLC_ROLE", None)
    try:
        yield role
    finally:
        if role is not None:
            os.environ["DMLC_ROLE"] = role
