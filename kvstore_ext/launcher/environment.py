"""What a process of the job finds in its environment."""

from __future__ import annotations

import contextlib
import os
from typing import Mapping

from .job_key import NAME as JOB_KEY
from .ranks import Endpoint

NOTICE = "KVSTORE_EXT_NOTICE"  # seconds that a job has once it is told to end

# These come from -n, -s, --port, --notice, the process and its job: --env must not contradict them.
OWN_NAMES = (
    "DMLC_ROLE",
    "DMLC_NUM_WORKER",
    "DMLC_NUM_SERVER",
    "DMLC_PS_ROOT_PORT",
    "KVSTORE_EXT_LAUNCH_RANK",
    "KVSTORE_EXT_LOCAL_RANK",
    "KVSTORE_EXT_JOB",
    "KVSTORE_EXT_SERVERS",
    NOTICE,
)

TRACE = "KVSTORE_EXT_TRACE"  # the directory for a trace, on each host

# Passed along to other hosts. PATH and its kin, so that `python` is the same one everywhere.
_PREFIXES = ("KVSTORE_EXT_", "MXNET_", "DMLC_", "PS_", "OMP_")
_NAMES = ("PATH", "PYTHONPATH", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH")

# Each is right on one host or in one job only.
_NEVER_FORWARDED = (
    *OWN_NAMES,
    "DMLC_PS_ROOT_URI",
    "DMLC_NODE_HOST",
    "KVSTORE_EXT_LAUNCH_TOKEN",
    JOB_KEY,  # job.py has it go where it is meant to
)

_DEFAULTS = {
    # MXNet reads it when it is imported. By default it runs many operators as one, which then
    # waits for all their parameters, and nothing of the communication overlaps with them.
    "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "1",
    # Python holds back what it prints into a pipe, here until minutes after the fact.
    "PYTHONUNBUFFERED": "1",
}


def forwarded(ambient: Mapping[str, str]) -> dict[str, str]:
    """Returns those of the launcher's own variables that go along to other hosts."""
    return {
        name: value
        for name, value in ambient.items()
        if (name.startswith(_PREFIXES) or name in _NAMES) and name not in _NEVER_FORWARDED
    }


def traced(directory: str | None, steps: str | None = None) -> dict[str, str]:
    """Returns the variables by which processes are traced; none without a directory."""
    if directory is None:
        return {}
    chosen = {"KVSTORE_EXT_TRACE_STEPS": steps} if steps else {}
    return {TRACE: os.path.normpath(os.path.join(working_directory(), directory)), **chosen}


def copied(directory: str) -> str:
    """Returns where a directory is that the launcher's working one was copied with, as seen from
    the copy; elsewhere it has the same path."""
    inside = os.path.relpath(directory, working_directory())
    return directory if inside.split(os.sep)[0] == os.pardir else inside


def noticed(seconds: float | None) -> dict[str, str]:
    """Returns the variable by which processes know how long they have once they are told to end;
    none where that is not said."""
    return {} if seconds is None else {NOTICE: f"{seconds:f}"}


def working_directory() -> str:
    """Returns the launcher's, by the name under which its user is there: other hosts may have it
    under that one alone, where a link leads to it here."""
    named = os.environ.get("PWD", "")
    with contextlib.suppress(OSError):
        if os.path.isabs(named) and os.path.samefile(named, os.curdir):
            return named
    return os.getcwd()


def process_environment(
    role: str,
    counts: Mapping[str, int],
    given: Mapping[str, str],
    ambient: Mapping[str, str],
    remote: bool,
    interface: str | None,
    own_servers: bool = True,
) -> dict[str, str]:
    """Returns what is laid over the environment that the process's host has anyway.

    `counts` holds the numbers of "worker" and "server", `given` comes from --env, `ambient` is
    the launcher's own environment. `own_servers`: servers are those of kvstore_ext, so that workers
    refuse MXNet's stores. Ranks and addresses are not known yet.
    """
    environment = forwarded(ambient) if remote else {}
    environment.update({k: v for k, v in _DEFAULTS.items() if k not in ambient})
    if interface is not None:
        environment["DMLC_INTERFACE"] = interface
    environment.update(given)
    environment["DMLC_ROLE"] = role
    environment["DMLC_NUM_WORKER"] = str(counts["worker"])
    environment["DMLC_NUM_SERVER"] = str(counts["server"])
    # Of other servers too, as a job may have been started by a process of another one.
    environment["KVSTORE_EXT_SERVERS"] = "kvstore_ext" if own_servers else "others"
    return environment


def with_addresses(
    environment: Mapping[str, str],
    rank: int,
    local_rank: int,
    job: str,
    scheduler: Endpoint,
    own: Endpoint,
) -> dict[str, str]:
    """Returns the environment with the process's rank, that among its role's processes of its host,
    the name of its job and the addresses that lead to it.

    What --env has set stays; a rank may then differ from the one that MXNet gives.
    """
    return {
        "DMLC_PS_ROOT_URI": scheduler.address,
        "DMLC_PS_ROOT_PORT": str(scheduler.port),
        # Otherwise ps-lite takes the first network interface that is not the loopback, and any
        # port.
        "DMLC_NODE_HOST": own.address,
        "PORT": str(own.port),
        **environment,
        "KVSTORE_EXT_LAUNCH_RANK": str(rank),
        "KVSTORE_EXT_LOCAL_RANK": str(local_rank),
        "KVSTORE_EXT_JOB": job,
    }
