"""Options of MXNet's tools/launch.py and of dmlc-core's tracker that have no sense here.

Users have them in scripts, so each says in a line what to write instead. Those with the same sense
are further names of the launcher's own options.
"""

from __future__ import annotations

import argparse

from .refused_options import add_refused

_YARN = "YARN is not supported; without it, --launcher ssh, mpi or slurm starts the job"
_KUBERNETES = "under Kubernetes each pod starts its own process, with MXNet's variables"
_CORES = (
    "processes may use all cores; a limit for MXNet's threads is {env} OMP_NUM_THREADS=N, and "
    "Slurm's is --launcher-options=--cpus-per-task=N"
)
_MEMORY = "processes may use all memory; Slurm's limit is --launcher-options=--mem=1G"
_FILES = "files are not copied one by one; --sync-dst-dir DIR copies the working directory"

REPLACED = {
    "--p3": "the name of the store says so: mx.kv.create('p3'), or --replace dist_sync=p3",
    "--byteps-launch": "BytePS has a launcher of its own, bpslaunch",
    "--worker-cores": _CORES.format(env="--env-worker"),
    "--server-cores": _CORES.format(env="--env-server"),
    "--worker-memory": _MEMORY,
    "--server-memory": _MEMORY,
    "--jobname": "only Slurm's jobs have names: --launcher-options=--job-name=NAME",
    "--queue": "only Slurm has queues: --launcher-options=--partition=NAME",
    "--log-level": "there is one level; --quiet says less",
    "--log-file": "every process has a log of its own, in --log-dir DIR",
    "--auto-file-cache": _FILES,
    "--files": _FILES,
    "--archives": _FILES,
    "--ship-libcxx": "point to a library of your own with --env LD_LIBRARY_PATH=DIR",
    "--local-num-attempt": "--restarts N starts the whole job again after a failure",
    "--slurm-worker-nodes": "say on how many nodes all run: --launcher-options=--nodes=N",
    "--slurm-server-nodes": "say on how many nodes all run: --launcher-options=--nodes=N",
    "--sge-log-dir": "SGE is not supported; logs are in --log-dir DIR",
    "--mesos-master": "Mesos is not supported; --launcher ssh, mpi or slurm starts the job",
    "--hdfs-tempdir": _YARN,
    "--yarn-app-classpath": _YARN,
    "--yarn-app-dir": _YARN,
    "--kube-namespace": _KUBERNETES,
    "--kube-worker-image": _KUBERNETES,
    "--kube-server-image": _KUBERNETES,
    "--kube-worker-template": _KUBERNETES,
    "--kube-server-template": _KUBERNETES,
}


def add_replaced(parser: argparse.ArgumentParser) -> None:
    """Has the parser end with a line for each of these options."""
    add_refused(parser, "MXNet's launcher: here,", REPLACED)
