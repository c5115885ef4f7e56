"""What the environment sets: the job of another launcher, the stores' options, MXNet's engine."""
from __future__ import annotations

import os
import socket

from ..mxnet_hooks.before_import import BULK_OF_BACKWARD, in_the_way
from .finding import Finding, note, wrong
from .imports import Facts

_OPTIONS = "KVSTORE_EXT_OPTIONS"
_OF_THE_ADDRESS = ("DMLC_INTERFACE", "DMLC_NODE_HOST")


def job(imports: dict[str, Facts]) -> Finding:
    """The job that a launcher has put this process into, by MXNet's own variables."""
    facts = imports["kvstore_ext"]
    found = ", ".join(
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith("DMLC_") and name not in _OF_THE_ADDRESS
    )
    if "job" not in facts:
        return Finding("job", found) if found else Finding("job", "none yet")
    if facts["refused_job"]:
        remedy = "set it as MXNet's launchers do, or start the job by kvstore-launch"
        return wrong("job", f"{facts['refused_job']} ({found})", remedy)
    if facts["job"] is None:
        return Finding("job", f"none yet: DMLC_ROLE is not set{found and f' ({found})'}")
    known = facts["job"]
    text = f"{known['workers']} workers, {known['servers']} servers, scheduler {known['scheduler']}"
    try:
        socket.gethostbyname(known["scheduler"].rpartition(":")[0])
    except OSError as error:
        remedy = "DMLC_PS_ROOT_URI has to be an address or a name that every host knows"
        return wrong("job", f"{text}, which is not known here: {error.strerror}", remedy)
    return Finding("job", f"{known['role']} of {text}")


def options(imports: dict[str, Facts]) -> Finding:
    """KVSTORE_EXT_OPTIONS, as a store would read it."""
    refused = imports["kvstore_ext"].get("refused_options")
    if refused:
        return wrong("options", refused, f"mend {_OPTIONS}, or unset it")
    return Finding("options", os.environ.get(_OPTIONS) or f"the defaults: {_OPTIONS} is not set")


def engine() -> Finding:
    """Whether MXNet's engine lets communication overlap with the forward pass."""
    others = [f"{name}={value}" for name, value in in_the_way().items()]
    if others:
        text = f"{', '.join(others)}: layers wait for each other's parameters"
        return note("engine", text, "unset it: kvstore_ext sets what overlapping needs")
    bulk = os.environ.get(BULK_OF_BACKWARD, "1")
    if bulk != "1":
        text = f"{BULK_OF_BACKWARD}={bulk}: gradients of so many operations leave together"
        return note("engine", text, "unset it, unless GPUs wait for their processors without it")
    return Finding("engine", "layers begin when their own parameters are there")
