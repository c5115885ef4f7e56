"""How an arm of the replay is predicted.

Links and waits are slower in the replay, and its processors are not: so the slower cluster is
simulated, whose hosts share this machine's processors.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict

from kvstore_ext.predict.cluster import Cluster
from kvstore_ext.predict.models_exchanged import EcDnn
from kvstore_ext.predict.network import load
from kvstore_ext.predict.simulation import predict
from kvstore_ext.predict.speeds import Speeds
from kvstore_ext.predict.stores import LaneStore, stores

from benchmarks.prediction.settings import Setting
from benchmarks.replay.arms import ARMS, ModelRounds

_FLOAT = 4
_PROCESSORS = 2  # of the machine that measured
_MODELS = {name: arm.models for name, arm in ARMS.items() if arm.models}


def _arms(speeds: Speeds) -> Dict[str, Any]:
    known = stores(speeds)
    slim = {
        f"slim_dp{name}{keys}": LaneStore(
            speeds, "slim_dp", shares=alpha, indices=alpha / 2 if keys else 0
        )
        for name, alpha in (("", 0.3), ("_20", 0.2), ("_50", 0.5))
        for keys in ("", "_keys")
    }
    return {
        **known, **slim, "horovod": known["ring"], "slicing": LaneStore(speeds, priorities=False),
        "p3_updates": LaneStore(speeds, updates=True),
    }  # fmt: skip


def is_known(arm: str) -> bool:
    """Whether there is a prediction for it."""
    return arm in _arms(Speeds()) or arm in _MODELS


def seconds(setting: Setting, speeds: Speeds) -> float:
    """An iteration's, as on the device that is replayed."""
    network = load(setting.trace).scaled(setting.dilation if setting.computes else 0)
    cluster = Cluster.of(
        setting.hosts, setting.gigabits / setting.dilation, processors=_PROCESSORS,
        shared_by=setting.hosts,
    )  # fmt: skip
    models = _MODELS.get(setting.arm)
    if models:
        found = _ec_dnn(models, setting.hosts * network.batch).predict(network, cluster)
    else:
        store = _arms(speeds)[setting.arm]
        if setting.slice_elements and isinstance(store, LaneStore):
            store = replace(store, slice_bytes=_FLOAT * setting.slice_elements)
        found = predict(network, cluster, store, setting.by_name)
    return found.seconds / setting.dilation


def _ec_dnn(models: ModelRounds, batch: int) -> EcDnn:
    """The trainings whose rounds these are, with so many examples in a step of all workers. All of
    a worker's examples are those for which equation 9 needs outputs."""
    return EcDnn(
        models.tau, models.compression / models.tau, models.relabelled / models.diverse,
        examples=models.diverse * batch,
    )  # fmt: skip
