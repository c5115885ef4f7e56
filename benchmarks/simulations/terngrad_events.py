"""TernGrad's clusters by the event model of kvstore-ext predict, beside its paper's own equations.

A machine's GPUs are one worker, which pushes their sum by the lane and has a server beside it.
Slices leave by priority while the backward pass goes on, and results come while the forward pass
does. Inside of a machine it is the paper's terms: GPUs add up floats, and nothing of that overlaps.
"""
from __future__ import annotations

from dataclasses import replace
from math import log2

from benchmarks.replay.trace import Trace, of_predict
from benchmarks.simulations.terngrad_model import Machines

# By its place: figures are measured by processes that inherit what kvstore_ext would set.
Cluster = of_predict("cluster").Cluster
Speeds = of_predict("speeds").Speeds
LaneStore = of_predict("stores").LaneStore
predict = of_predict("simulation").predict

PROCESSORS = 16  # of a machine, for messages and sums
_FLOAT_BYTES = 4


def throughput(machines: Machines, gpus: int, network: Trace, codec: str) -> float:
    """Samples a second of all GPUs, in weak scaling.

    Parameters
    ----------
    gpus : int
        Machines are filled one after the other, which must come out even.
    network : Trace
        With the times of one GPU and its batch.
    codec : str
        "terngrad", or "" for floats. Encoding costs nothing, as in the paper's equations.
    """
    of_machine = min(gpus, machines.gpus)
    hosts = gpus // of_machine
    computing = _in_machines(machines, of_machine, network)
    seconds = computing.compute  # on one machine nothing goes through the network
    if hosts > 1:
        gigabits = machines.between_machines * 8 / 1e9
        cluster = Cluster.of(hosts, gigabits, delay=machines.latency, processors=PROCESSORS)
        seconds = predict(computing, cluster, LaneStore(Speeds(), codec), alike=True).seconds
    return gpus * network.batch / seconds


def _in_machines(machines: Machines, gpus: int, network: Trace) -> Trace:
    """The network whose backward pass adds up the gradients of a machine's GPUs, layer by layer."""
    each = _FLOAT_BYTES * (log2(gpus) / machines.between_gpus + 1 / machines.to_gpu)
    layers = [
        replace(layer, backward=layer.backward + layer.elements * each) for layer in network.layers
    ]
    return replace(network, layers=layers)
