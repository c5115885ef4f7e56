"""kvstore_ext: faster gradient communication for MXNet's KVStore.

`import kvstore_ext`, before `import mxnet`, makes `mx.kv.create('p3')` known. Every directory of
Python is a room whose docstring says what it promises, in which order to read it, and what it may
import:

    errors.py, config.py, spelling.py,     what everything stands on
    stock_store.py, version.py, copies.py,
    notes.py, whole_numbers.py,
    unwritten.py
    descriptors.py                         room for a process's connections
    launch_reports.py, status_reports.py   what a process tells its launcher
    by_place.py                            commands that do without MXNet
    security/                              a job that keeps strangers out
    keys/, protocol/                       keys at a worker; what workers and servers say
    compression/, optimizer/               methods that make gradients small; who updates parameters
    server/                                what a server is made of, and its process
    lane/                                  how a store gets its worker
    snapshots/                             a run, written beside training, and gone on from
    slim_dp/                               Slim-DP, a method of its own
    store/                                 the KVStore that a script sees
    mxnet_hooks/                           before and after MXNet's import, names, the runner
    methods.py                             the list of methods
    ec_dnn/                                models instead of gradients, over the public store
    launcher/                              starts jobs; imports nothing of all this
    trace/, report/                        what a job's processes record, and where its time goes
    predict/                               how fast each store will be, before it runs
    check/                                 is this host fit? are those, and their links?
    csrc/                                  the core in C++; _core.pyi is its typed face

docs/architecture.md follows one gradient from the script to the server and back.
"""
from __future__ import annotations

import os
import sys
import warnings

from .check.asked import begin_check_if_asked
from .mxnet_hooks import before_import
from .version import __version__

begin_check_if_asked()
before_import.check_compiled(__name__, os.path.dirname(os.path.abspath(__file__)))

_mxnet_was_imported = "mxnet" in sys.modules
if not _mxnet_was_imported:
    before_import.check_requirements()
    before_import.prepare_engine()
    before_import.restore_numpy_aliases()
elif not before_import.engine_overlaps():
    warnings.warn(
        "mxnet was imported before kvstore_ext, so it joins layers into operations that wait for "
        "each other's parameters, and nothing overlaps with the forward pass. Import kvstore_ext "
        "first, or start the script with MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN=1 in the environment, "
        "and without the same name that ends in _FWD or _BWD.",
        stacklevel=2,
    )

mxnet = before_import.import_mxnet()
before_import.check_version(mxnet.__version__)

from . import _core  # noqa: E402

_library = mxnet.libinfo.find_lib_path()[0]
try:
    _core.load(_library)
    _missing = _core.harden(_library)
except RuntimeError as error:
    raise ImportError(f"mxnet {mxnet.__version__} at {_library} does not fit: {error}") from None

for _what in _missing:
    warnings.warn(
        f"this MXNet does not keep strangers' messages from ps-lite: {_what}. Keep its ports "
        "behind a firewall",
        stacklevel=2,
    )

from .errors import KVStoreError  # noqa: E402
from .security.encryption import encrypt_member  # noqa: E402

try:
    encrypt_member()
except KVStoreError as error:
    raise ImportError(str(error), name=__name__) from None

from .config import Options  # noqa: E402
from .errors import (  # noqa: E402
    ArrayMismatch,
    ClusterError,
    KeyNotInitialised,
    OptionError,
)

if not before_import.serves_scheduler():
    from . import methods  # noqa: F401 - registers them, for what is imported next
    from .mxnet_hooks.after_import import adopt
    from .mxnet_hooks.registry import register
    from .store.p3_worker import P3Worker

    register()
    adopt(P3Worker)

__all__ = [
    "ArrayMismatch",
    "ClusterError",
    "KVStoreError",
    "KeyNotInitialised",
    "OptionError",
    "Options",
    "P3Worker",
    "__version__",
]
