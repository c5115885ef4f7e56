"""TernGrad's performance model (TernGrad, appendix B): all-reduce by a tree, nothing overlaps."""
from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2


@dataclass(frozen=True)
class Machines:
    """A cluster as the model knows it.

    Parameters
    ----------
    name : str
    gpus : int
        Of a machine.
    between_gpus, to_gpu, between_machines : float
        Bytes a second: the paper's C_gwd, C_cwd and C_nwd.
    latency : float
        Seconds of a message between machines: C_ncost.
    """

    name: str
    gpus: int
    between_gpus: float
    to_gpu: float
    between_machines: float
    latency: float


def communication(cluster: Machines, workers: int, gradient: float) -> float:
    """T_comm of appendix B in seconds.

    Parameters
    ----------
    workers : int
        GPUs; machines are filled one after the other, which must come out even.
    gradient : float
        Bytes of the paper's |g|.
    """
    gpus = min(workers, cluster.gpus)
    machines, rest = divmod(workers, gpus)
    if rest:
        raise ValueError(f"{workers} GPUs do not fill machines of {cluster.gpus}")
    inside = gradient / cluster.between_gpus * log2(gpus) + gradient / cluster.to_gpu
    return inside + (cluster.latency + gradient / cluster.between_machines) * log2(machines)


def weak_scaling(
    cluster: Machines, workers: int, gradient: float, batch: int, compute: float
) -> float:
    """Tput_weak, equation 30, in samples a second.

    Parameters
    ----------
    batch : int
        Samples of a GPU and step: K.
    compute : float
        Seconds that a GPU computes for a step: T(1, 1, K, |g|) - |g| / C_cwd.
    """
    return workers * batch / (compute + communication(cluster, workers, gradient))


def implied_compute(speedup: float, floats: float, ternary: float) -> float:
    """The computing in seconds with which two communication times give a speedup."""
    return (floats - speedup * ternary) / (speedup - 1)


def bits_of_sum(workers: int) -> int:
    """That an element of a sum of so many ternary gradients takes (TernGrad, section 3.2)."""
    return ceil(log2(1 + 2 * workers))
