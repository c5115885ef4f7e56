"""Whether the job's scheduler has this process's key, found out before ps-lite starts.

ZeroMQ would not say: it tries to connect for ever.
"""
from __future__ import annotations

import contextlib
import socket
import time
from typing import Optional, Tuple

from ..config import Job, Options
from ..errors import ClusterError
from .curve_hello import (
    ANSWER_BYTES,
    GREETING,
    GREETING_BYTES,
    MECHANISM,
    NONE,
    SIGNATURE_BYTES,
    CurveHello,
    mechanism_of,
    receive,
)
from .encryption import encrypt_process
from .job_key import NAME, JobKey

# Seconds. It may be the scheduler of a job that is just ending that refuses.
_REFUSED = 3.0
_ANSWER = 5.0  # from one that is there
_LAST_ANSWER = 2.0  # from one that is asked when time is up already
_BETWEEN = 0.2  # attempts
_WITHOUT = (
    "; the scheduler has none, as MXNet's own has not, whose jobs start by kvstore-launch "
    "--no-secure"
)


def enter_job(job: Job, timeout: float) -> None:
    """Has this process be one of a job that has a key, and does nothing in one that has none.

    Returns once the scheduler has admitted it.

    Raises
    ------
    OptionError
        For a malformed key.
    ClusterError
        Where this process cannot encrypt, or the scheduler does not admit it within `timeout`
        seconds: after 3 where it answers as one does that has another key, or none.
    """
    key = JobKey.from_environment()
    if key is None:
        return
    encrypt_process(key, job.role)
    if job.role != "scheduler":
        await_admission(job.scheduler, key, timeout)


def enter_stock_job() -> None:
    """As `enter_job`, for a store of MXNet's own, whose servers may be as well and have no key."""
    job = Job.from_environment()
    if job is not None:
        enter_job(job, Options.timeout)


def unreachable(scheduler: str, timeout: float, error: OSError) -> str:
    """Says that a scheduler's port is closed, or its host not there."""
    return f"the scheduler at {scheduler} cannot be reached within {timeout:g} s: {error}"


def why_unreachable(scheduler: str, timeout: float) -> str:
    """Why a process that has waited so long for its job has not come to this scheduler, or has lost
    it since; nothing where it answers."""
    try:
        _connect(scheduler, _LAST_ANSWER).close()
    except OSError as error:
        return unreachable(scheduler, timeout, error)
    return ""


def why_without_key(scheduler: str) -> str:
    """Why a process without a key waits in vain for this scheduler; nothing where it may come."""
    if JobKey.from_environment() is not None:
        return ""
    with contextlib.suppress(OSError), _connect(scheduler, _LAST_ANSWER) as connection:
        connection.sendall(GREETING[:SIGNATURE_BYTES])
        if mechanism_of(receive(connection, GREETING_BYTES)) == MECHANISM:
            return (
                f"the scheduler at {scheduler} admits those alone who have the job's key, and "
                f"{NAME} is not set here"
            )
    return ""


def await_admission(scheduler: str, key: JobKey, timeout: float) -> None:
    """Returns once the scheduler has answered as one does that has the key; raises ClusterError."""
    latest = time.monotonic() + timeout
    refused_since = None
    while True:
        begun = time.monotonic()
        reason = f"the scheduler at {scheduler} has not answered within {timeout:g} s"
        admitted = None
        mechanism = b""
        try:
            with _connect(scheduler, max(0.1, min(_ANSWER, latest - begun))) as connection:
                mechanism, admitted = _ask(connection, key)
        except OSError as error:
            reason = unreachable(scheduler, timeout, error)
        if admitted:
            return
        now = time.monotonic()
        refused_since = None if admitted is None else refused_since or begun
        if refused_since is not None and (now - refused_since > _REFUSED or now > latest):
            raise ClusterError(
                f"not admitted by the scheduler at {scheduler}: is {NAME} the same everywhere? "
                f"Here its fingerprint is {key.fingerprint}{_WITHOUT if mechanism == NONE else ''}"
            )
        if now > latest:
            raise ClusterError(reason)
        time.sleep(_BETWEEN)


def _connect(scheduler: str, seconds: float) -> socket.socket:
    host, port = scheduler.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=seconds)


def _ask(connection: socket.socket, key: JobKey) -> Tuple[bytes, Optional[bool]]:
    """The mechanism of the other end, and whether it answers, within the connection's timeout, as
    one does that has the key; None where it does not say so much."""
    hello = CurveHello(key.socket_secret)
    mechanism = b""
    latest = time.monotonic() + (connection.gettimeout() or 0)
    try:
        connection.sendall(GREETING[:SIGNATURE_BYTES])
        mechanism = mechanism_of(receive(connection, GREETING_BYTES))
        connection.settimeout(max(0.1, latest - time.monotonic()))
        connection.sendall(GREETING[SIGNATURE_BYTES:] + hello.frame)
        return mechanism, hello.is_answered_by(receive(connection, ANSWER_BYTES))
    except socket.timeout:
        return mechanism, None
    except OSError:
        return mechanism, False
