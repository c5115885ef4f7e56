"""What is compared: kvstore_ext's stores and its peers."""
from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from benchmarks.launched import STOCK_P3

TRACES = str(Path(tempfile.gettempdir(), "kvstore_ext-replay-trace"))
PEERS = Path(f"{sys.prefix}-peers", "bin", "python")  # what `make peers` makes


# Of every process: a cluster shares two processors. oneDNN leaves arrays in layouts of its own,
# with which MXNet's own stores train to garbage where a test comes before the first step; but the
# replay computes nothing that it would. MXNet's RNN has to be told by itself, or it fails. The last
# two are what importing kvstore_ext sets: peers' layers are operations of their own as well, or
# nothing could overlap.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "MXNET_MKLDNN_ENABLED": "0", "MXNET_USE_MKLDNN_RNN": "0",
    "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "1", "MXNET_OPTIMIZER_AGGREGATION_SIZE": "1",
}


@dataclass(frozen=True)
class Runtime:
    """An interpreter and what it imports first."""

    python: str
    modules: Tuple[str, ...]


OURS = Runtime(sys.executable, ("kvstore_ext", "kvstore_ext.server.process"))
STOCK = Runtime(sys.executable, ("mxnet", "mxnet.kvstore.kvstore_server"))
HOROVOD = Runtime(str(PEERS), ("horovod.mxnet", "horovod.runner.http.http_server"))


@dataclass(frozen=True)
class ModelRounds:
    """What a worker does from one aggregation of models to the next, in mini-batches.

    Parameters
    ----------
    tau : int
        Local steps.
    compression : int
        Steps after the aggregation.
    diverse, relabelled : int
        Those for which every worker's model computes outputs: before the local steps, which are by
        EC-DNN's equation 9, and to relabel examples.
    """

    tau: int
    compression: int
    diverse: int
    relabelled: int

    def steps(self, workers: int) -> float:
        """In all, of which a forward pass is about a third."""
        return self.tau + self.compression + workers * (self.diverse + self.relabelled) / 3


@dataclass(frozen=True)
class Arm:
    """One way to exchange gradients.

    Parameters
    ----------
    label : str
        For tables and pictures.
    store : str
        For `mx.kv.create`, or "horovod".
    compression : dict
        For `set_gradient_compression`.
    environment : dict
        Of all processes.
    options : dict
        KVSTORE_EXT_OPTIONS.
    updates : bool
        The store updates weights, rather than the worker.
    momentum : float
        Of the optimizer, where the store updates.
    snapshots : int
        Steps from one snapshot to the next; 0: none.
    apart : bool
        Gradients are pushed and sums pulled in two calls.
    keeps_gradients : bool
        Sums do not take the gradients' places, after which all workers would have the same: for
        encodings whose size depends on that.
    models : ModelRounds, optional
        Models are exchanged instead of gradients, and an iteration is such a round.
    share : float
        Of the bytes that float32 gradients would be, about what it sends: how long it will take
        follows from that.
    version : int
        Goes up with what changes a run's result, so that earlier results do not count any more.
    """

    label: str
    runtime: Runtime
    store: str
    compression: Dict[str, Any] = field(default_factory=dict)
    environment: Dict[str, str] = field(default_factory=dict)
    options: Dict[str, Any] = field(default_factory=dict)
    updates: bool = False
    momentum: float = 0.0
    snapshots: int = 0
    apart: bool = False
    keeps_gradients: bool = False
    models: Optional[ModelRounds] = None
    share: float = 1.0
    version: int = 3

    @property
    def has_servers(self) -> bool:
        """Whether it has servers and a scheduler, rather than a rendezvous."""
        return self.runtime is not HOROVOD

    @property
    def dense(self) -> bool:
        """Whether every gradient travels as float32, so that the bound is one for it."""
        stores = ("p3", "dist_sync", "horovod")
        return self.store in stores and not self.compression and not self.models

    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        if Path(self.runtime.python).exists():
            return ""
        return f"{self.label} is not installed: run `make peers`"


# Of the bytes of float32, there and back.
_SHARES = {"terngrad": 0.08, "qsgd": 0.25, "dgc": 0.05, "onebit": 0.04, "signsgd": 0.04,
           "fp16": 0.5, "2bit": 0.53}


# Hosts have more processors than are here for each of them.
_ENCODING = {"encode_threads": 2}


def _compressed(kind: str) -> Arm:
    arm = Arm(kind, OURS, "p3", {"type": kind}, options=_ENCODING, share=_SHARES[kind])
    # Which elements it selects, and so how many have a sum, is up to each worker's gradients.
    return replace(arm, keeps_gradients=True, version=4) if kind == "dgc" else arm


def _slim(label: str, alpha: float, beta: float, explorer: str = "seed") -> Arm:
    """The Slim-DP paper's shares (section 4.2), with the explorer's indices or without."""
    compression = {"type": "slim_dp", "alpha": alpha, "beta": beta, "explorer": explorer}
    share = alpha if explorer == "seed" else alpha + (alpha - beta) / 2
    return Arm(label, OURS, "slim_dp", compression, options=_ENCODING, updates=True, share=share)


ARMS: Dict[str, Arm] = {
    "p3": Arm("p3", OURS, "p3"),
    "p3_updates": Arm("p3, updates on the servers", OURS, "p3", updates=True, momentum=0.9),
    # Four times as often as by default: a run of 55 steps has two of them.
    "p3_snapshots": Arm("p3, updates on the servers, snapshots", OURS, "p3", updates=True,
                        momentum=0.9, snapshots=25),
    "p3_secure": Arm("p3, encrypted", OURS, "p3",
                     environment={"KVSTORE_EXT_JOB_KEY": 32 * "5e"}),  # of nobody's secrets
    "p3_checksum": Arm("p3, with checksums", OURS, "p3", options={"checksum": True}),
    # Of all steps; each run writes over the last one's.
    "p3_trace": Arm("p3, traced", OURS, "p3", environment={"KVSTORE_EXT_TRACE": TRACES}),
    "p3_finite": Arm("p3, numbers looked at", OURS, "p3", options={"non_finite": "raise"}),
    "p3_skip": Arm("p3, numbers looked at to skip", OURS, "p3", options={"non_finite": "skip"}),
    # As links have where training waits for the network.
    "p3_windows": Arm("p3, four slices on a link", OURS, "p3", options={"window_bytes": 800_000}),
    "slicing": Arm("p3, slicing alone", OURS, "p3", options={"priorities": False}),
    **{kind: _compressed(kind) for kind in _SHARES},
    "slim_dp": _slim("slim_dp", 0.3, 0.15),
    "slim_dp_keys": _slim("slim_dp, with indices", 0.3, 0.15, "keys"),
    "slim_dp_20": _slim("slim_dp, 20 %", 0.2, 0.1),
    "slim_dp_50": _slim("slim_dp, 50 %", 0.5, 0.25),
    "slim_dp_20_keys": _slim("slim_dp, 20 %, with indices", 0.2, 0.1, "keys"),
    # As by ec_dnn.Method, whose defaults are rounds of more steps: four batches a worker.
    "ec_dnn": Arm("EC-DNN, every 8 steps", OURS, "p3", models=ModelRounds(8, 1, 4, 3), share=0.5),
    "dist_sync": Arm("MXNet dist_sync", STOCK, "dist_sync"),
    # Keys from 100,000 elements on are dealt to all servers, not from 1,000,000 on.
    "dist_sync_split": Arm("MXNet dist_sync, split more", STOCK, "dist_sync",
                           environment={"MXNET_KVSTORE_BIGARRAY_BOUND": "100000"}),
    "dist_sync_2bit": Arm("MXNet dist_sync, 2bit", STOCK, "dist_sync",
                          compression={"type": "2bit", "threshold": 0.5}, apart=True, share=0.53),
    "stock_p3": Arm("MXNet P3", STOCK, "dist_sync", environment=STOCK_P3),
    "horovod": Arm("Horovod (Gloo)", HOROVOD, "horovod"),
}


def environment_of(arm: Arm, limit: float) -> Dict[str, str]:
    """Variables of all processes of an arm's job that do not depend on the cluster; our stores wait
    so many seconds at most, or one, which is the least that they take."""
    variables = {**ENVIRONMENT, **arm.environment}
    if arm.runtime is OURS:
        limits = dict.fromkeys(("timeout", "silence", "patience"), max(limit, 1.0))
        variables["KVSTORE_EXT_OPTIONS"] = json.dumps({**limits, **arm.options})
    return variables


def names() -> List[str]:
    """Those of all arms."""
    return list(ARMS)
