"""A worker of the replay that exchanges models instead of gradients, as EC-DNN does.

Models are as large as the trace's network, and travel by what EC-DNN's own trainer uses. Between
exchanges nothing travels, so that computing is a sleep here.
"""
from __future__ import annotations

import json
import time
from pathlib import Path

import mxnet as mx
from kvstore_ext.ec_dnn.models import Models
from mxnet import gluon

from benchmarks.replay.arms import ModelRounds
from benchmarks.replay.meters import Meters
from benchmarks.replay.trace import Trace, load
from benchmarks.replay.traffic import between, mark


def work(settings: str, result: str) -> None:
    """Runs the rounds and writes seconds and bytes of a local step of each as JSON; see `job.py`.
    An iteration is a round. At least one of them counts."""
    how = json.loads(settings)
    rounds = ModelRounds(**how["models"])
    trace = load(how["trace"]).scaled(how["dilation"] if how["computes"] else 0)
    forward = sum(layer.forward for layer in trace.layers)
    store = mx.kv.create(how["store"])
    models = Models(_network(trace), store)
    store._barrier()
    marks = [mark()]
    for iteration in range(how["warm_up"] + how["iterations"]):
        if iteration == how["warm_up"]:
            meters = Meters.now()
        for batches, steps in (
            (rounds.diverse, rounds.tau), (rounds.relabelled, rounds.compression)
        ):
            for _ in models.each():
                time.sleep(batches * forward)
            time.sleep(steps * trace.compute)
        marks.append(mark())
    metered = Meters.now().since(meters)
    seconds, sent, received = (
        [value / rounds.tau for value in series] for series in between(marks)
    )
    Path(result).write_text(json.dumps({
        "rank": store.rank, "seconds": seconds, "sent": sent, "received": received,
        "traffic": None, **metered,
    }))


def _network(trace: Trace) -> gluon.Block:
    """One with the trace's parameters, which computes nothing."""
    network = gluon.Block()
    for layer in trace.layers:
        for name, size in layer.parameters.items():
            network.params.get(name, shape=(size,), init="zeros")
    network.initialize()
    return network
