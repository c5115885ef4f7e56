"""kvstore_ext: faster gradient communication for MXNet's KVStore.

`import kvstore_ext`, before `import mxnet`, makes `mx.kv.create('p3')` known. To follow one
gradient from a script to the server and back, read in this order:

    store.py            the KVStore that the script sees
    exchange.py         its keys: which way each goes, and who updates it
    arrays.py           gives MXNet's engine an operation on a key's arrays
    lane.py             how a store gets its worker: a cluster's (local_lane.py: the process's own)
    csrc/engine.cc      the engine starts the operation when the gradient is computed
    csrc/worker_rounds.cc  sends its slices, encoded where asked (csrc/key_codec.cc), and takes the
                        results back; csrc/message.h says what travels
    csrc/link.cc        sends by priority within a window (csrc/window.h), over csrc/pslite.cc
    csrc/server_rounds.cc  adds what the workers send (csrc/aggregator.cc), answers all of them
    optimizer.py        updates the parameters on a server, slice by slice
    server.py           the process around it: python -m kvstore_ext.server

With Slim-DP (slim_options.py) a key turns off that way into slim_dp.py; csrc/slim_key.cc takes out
what travels of it, csrc/slim_slice.cc is the server's side, and core_selection.py with
csrc/core_selection.cc, csrc/server_cores.cc and csrc/worker_cores.cc chooses the core;
slim_states.py saves it all.

Beside that way lie compression/ (ways to make gradients small, each with a codec in csrc/: codec.h;
methods.py lists them), compressed_keys.py (which keys, and when), carried.py (what is left for
the next round), report.py (what it came to), csrc/worker.cc and csrc/server.cc (how a job begins,
fails and ends), settings.py (what servers hear of a changed optimizer), states.py (saving and
loading what optimizers remember), updates.py (optimizers that have to see whole parameters),
sparse.py (keys of MXNet's own store), after_mxnet.py (what Trainer and Module have to know), and
runner.py (python -m kvstore_ext: scripts as they are). broadcasts.py gives one worker's arrays to
all others, for ec_dnn/, which exchanges models instead of gradients. launcher/ starts jobs, and
imports nothing of all this.
"""
from __future__ import annotations

import sys
import warnings

from . import before_mxnet

_mxnet_was_imported = "mxnet" in sys.modules
if not _mxnet_was_imported:
    before_mxnet.prepare_engine()
    before_mxnet.restore_numpy_aliases()
    before_mxnet.check_distutils()
elif not before_mxnet.engine_overlaps():
    warnings.warn(
        "mxnet was imported before kvstore_ext, so it joins layers into operations that wait for "
        "each other's parameters, and nothing overlaps with the forward pass. Import kvstore_ext "
        "first, or start the script with MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN=1 in the environment.",
        stacklevel=2,
    )

with before_mxnet.hidden_role():
    import mxnet

before_mxnet.check_version(mxnet.__version__)

from . import _core  # noqa: E402

_library = mxnet.libinfo.find_lib_path()[0]
try:
    _core.load(_library)
except RuntimeError as error:
    raise ImportError(f"mxnet {mxnet.__version__} at {_library} does not fit: {error}") from None

from . import methods  # noqa: E402, F401 - registers them, for what is imported next
from .config import Options  # noqa: E402
from .errors import (  # noqa: E402
    ArrayMismatch,
    ClusterError,
    KeyNotInitialised,
    KVStoreError,
    OptionError,
)
from .names import register  # noqa: E402
from .store import P3  # noqa: E402

register()

__all__ = [
    "P3",
    "ArrayMismatch",
    "ClusterError",
    "KVStoreError",
    "KeyNotInitialised",
    "OptionError",
    "Options",
]
