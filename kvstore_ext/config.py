"""A store's options and its job: what stores and servers read of the environment. The launcher,
check/ and security/ read what is theirs themselves."""
from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import asdict, dataclass, fields
from typing import Any, Collection, Dict, Optional, Tuple

from .errors import OptionError
from .spelling import did_you_mean
from .trace.steps import Steps

MAX_SLICE_BYTES = 1 << 30
MAX_WINDOW_BYTES = 1 << 30  # credit has 32 bits, half of which tell old from new
MAX_SECONDS = 86400
MAX_NOTICE = 1_000_000  # seconds
MAX_TRACE_EVENTS = 1 << 30
MAX_THREADS = 64
_MOST_NUMBER = (1 << 28) - 1  # so that it takes ps-lite, which puts 7 bits in a byte, four bytes
NON_FINITE = ("keep", "skip", "raise")
FOR_EVER = 1e9  # seconds, as the core has it (csrc/support/limits.h)

# Options that must be equal on all workers.
_SHARED = (
    "slice_bytes",
    "deterministic",
    "priorities",
    "non_finite",
    "checksum",
    "verify_every",
)

# By an option's type: what its value may be, and that in words.
_KINDS = {
    "bool": ((bool,), "true or false, a bool"),
    "int": ((int,), "a whole number, an int"),
    "float": ((int, float), "a number"),
    "str": ((str,), "a word, a str"),
}


@dataclass(frozen=True)
class Options:
    """Options of every store, from KVSTORE_EXT_OPTIONS, a JSON object, or given in code.

    Options that must be equal on all workers are compared when the store opens.

    Attributes
    ----------
    slice_bytes
        Most bytes of a slice as it travels: the paper's best, 50,000 float32 (P3, section 5.6).
        Smaller slices keep priorities better and cost more messages. Slim-DP's are cut as if they
        travelled whole. Equal on all workers.
    window_bytes
        Bytes that a peer may be sent before it acknowledges; more keeps a fast link busy, less
        keeps priorities. 0 measures the links and adapts, and sends slices of 400 kB and more in
        parts where they are slow. Rank 0's holds for the job, but for shared memory, where a
        worker's own 0 leaves it to a window of 1.6 MB.
    timeout
        Seconds for what gives no signs of life: starting, until all processes have come and all
        workers have opened their stores; and a snapshot's files.
    silence
        Seconds without a sign of life after which a process counts as dead.
    patience
        Seconds that anything may wait for a living process; 0 sets no limit. Notices name it long
        before.
    deterministic
        Sum in the order of ranks, so that every run gives the same bits. A server then keeps the
        slices that arrive before their turn: up to one gradient a worker. MXNet's servers add up
        row-sparse gradients as they come, all the same. Equal on all workers.
    priorities
        For experiments. Without them all slices are equals, and leave in the order in which their
        gradients became ready: slicing alone (P3, section 5.2). Equal on all workers.
    non_finite
        What becomes of a gradient that travels uncompressed and has NaN or infinity: 'keep' sends
        it, as MXNet does; 'skip' has the key's round not count, on all workers; 'raise' ends the
        job. Equal on all workers.
    checksum
        Send a CRC-32C of every message between workers and servers along: one that comes damaged
        ends the job, with an error that names both hosts. Equal on all workers.
    verify_every
        Steps after which all workers' parameters are compared; a worker that has drifted ends the
        job, and is named. 0 compares nothing. Equal on all workers.
    shared_memory
        Exchange slices with a server of the worker's own host through memory that both have, and
        not through the network.
    encode_threads
        Threads of a worker that encode, and with slim_dp decode, beside those that compute. 0: as
        many as there are processors that MXNet leaves, 4 at most (lane/threads_left.py).
    trace_events
        For how many events a process that is traced has room, 48 bytes each.
    """

    slice_bytes: int = 200_000
    window_bytes: int = 0
    timeout: float = 300.0
    silence: float = 30.0
    patience: float = 0.0
    deterministic: bool = False
    priorities: bool = True
    non_finite: str = "keep"
    checksum: bool = False
    verify_every: int = 0
    shared_memory: bool = True
    encode_threads: int = 0
    trace_events: int = 1_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kinds, allowed = _KINDS[str(field.type)]
            if not isinstance(value, kinds) or (isinstance(value, bool) and field.type != "bool"):
                raise OptionError(f"option {field.name} is {value!r}; it must be {allowed}")
        if not 8 <= self.slice_bytes <= MAX_SLICE_BYTES:
            raise OptionError(
                f"option slice_bytes is {self.slice_bytes}; it must be 8 to {MAX_SLICE_BYTES}"
            )
        if self.window_bytes != 0 and not self.slice_bytes <= self.window_bytes <= MAX_WINDOW_BYTES:
            raise OptionError(
                f"option window_bytes is {self.window_bytes}; it must be 0, which adapts it, or "
                f"slice_bytes, {self.slice_bytes}, to {MAX_WINDOW_BYTES}"
            )
        for name in ("timeout", "silence"):
            seconds = getattr(self, name)
            if not 1 <= seconds <= MAX_SECONDS:
                raise OptionError(
                    f"option {name} is {seconds}; it must be 1 to {MAX_SECONDS} seconds"
                )
        if self.patience != 0 and not self.silence <= self.patience <= MAX_SECONDS:
            raise OptionError(
                f"option patience is {self.patience}; it must be 0, which sets no limit, or "
                f"silence, {self.silence}, to {MAX_SECONDS} seconds"
            )
        if not 0 <= self.encode_threads <= MAX_THREADS:
            raise OptionError(
                f"option encode_threads is {self.encode_threads}; it must be 1 to {MAX_THREADS}, "
                "or 0, which takes what MXNet leaves"
            )
        if not 1 <= self.trace_events <= MAX_TRACE_EVENTS:
            raise OptionError(
                f"option trace_events is {self.trace_events}; it must be 1 to {MAX_TRACE_EVENTS}"
            )
        if self.verify_every < 0:
            raise OptionError(
                f"option verify_every is {self.verify_every}; it must be a number of steps, or 0"
            )
        if self.non_finite not in NON_FINITE:
            raise OptionError(
                f"option non_finite is {self.non_finite!r}; it must be {' or '.join(NON_FINITE)}"
            )

    @classmethod
    def from_environment(cls, others: Collection[str] = ()) -> Options:
        """Reads KVSTORE_EXT_OPTIONS, which may hold other options as well: a compression's.

        Raises
        ------
        OptionError
            Where it is no JSON object, or names an option that does not exist or is out of range.
        """
        return cls.from_dict(environment_options(), others)

    @classmethod
    def from_dict(cls, values: Dict[str, Any], others: Collection[str] = ()) -> Options:
        """Options by name, leaving out the others; raises OptionError for names that are neither.
        """
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known and name not in others:
                more = f", and a compression's {', '.join(others)}" if others else ""
                meant = did_you_mean(name, {option: option for option in (*known, *others)})
                allowed = meant or f"; the options are {', '.join(known)}{more}"
                raise OptionError(f"there is no option {name!r}{allowed}")
        return cls(**{name: value for name, value in values.items() if name in known})

    @property
    def longest_wait(self) -> float:
        """Seconds of `patience`; centuries where that sets no limit."""
        return self.patience or FOR_EVER

    def shared(self) -> Dict[str, Any]:
        """Those that must be equal on all workers."""
        values = asdict(self)
        return {name: values[name] for name in _SHARED}


def environment_options() -> Dict[str, Any]:
    """All that KVSTORE_EXT_OPTIONS holds; raises OptionError where that is no JSON object."""
    text = os.environ.get("KVSTORE_EXT_OPTIONS", "{}")
    try:
        values = json.loads(text)
    except ValueError as error:
        raise OptionError(f"KVSTORE_EXT_OPTIONS is {text!r}, which is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise OptionError(f"KVSTORE_EXT_OPTIONS is {text!r}; it must be a JSON object")
    return values


@dataclass(frozen=True)
class Job:
    """The cluster that a launcher started this process in, from MXNet's own DMLC_ variables."""

    role: str
    workers: int
    servers: int
    scheduler: str  # host:port
    resending: float  # seconds in which ps-lite sends again what was lost; 0 without PS_RESEND
    big_array: int  # elements of an array that MXNet's own store deals to all servers
    launch_rank: Optional[int]  # what kvstore-launch takes for this process's rank
    name: str = ""  # that a launcher has given it and no other; empty without one

    @property
    def number(self) -> int:
        """One that its processes know each other by, of 28 bits; 0 where it has no name."""
        return (zlib.crc32(self.name.encode()) & _MOST_NUMBER) or 1 if self.name else 0

    @classmethod
    def from_environment(cls) -> Optional[Job]:
        """The job, or None outside one.

        Raises
        ------
        OptionError
            Where the variables are incomplete or malformed.
        """
        notice()  # which is read once the cluster stands: too late for an error
        role = role_of_process()
        if role is None:
            return None
        if role not in ("worker", "server", "scheduler"):
            raise OptionError(f"DMLC_ROLE is {role!r}; it must be worker, server or scheduler")
        host = os.environ.get("DMLC_PS_ROOT_URI")
        if not host:
            raise OptionError("DMLC_PS_ROOT_URI is not set; it must be the scheduler's address")
        return cls(
            role=role,
            workers=_count("DMLC_NUM_WORKER"),
            servers=_count("DMLC_NUM_SERVER"),
            scheduler=f"{host}:{_count('DMLC_PS_ROOT_PORT', 65535)}",
            resending=_resending(),
            big_array=_big_array(),
            launch_rank=launch_rank(),
            name=_job_name(),
        )


def role_of_process() -> Optional[str]:
    """What a launcher wants this process to be: worker, server or scheduler; None outside a job."""
    return os.environ.get("DMLC_ROLE")


def launch_rank() -> Optional[int]:
    """What kvstore-launch takes for this process's rank; None where it has not started it."""
    text = os.environ.get("KVSTORE_EXT_LAUNCH_RANK", "")
    return int(text) if re.fullmatch("[0-9]+", text) else None


def trace_asked_for() -> Optional[Tuple[str, Steps]]:
    """The directory for a trace and the steps of which it is to be, from KVSTORE_EXT_TRACE and
    KVSTORE_EXT_TRACE_STEPS; None without a directory. Raises OptionError for malformed steps."""
    directory = os.environ.get("KVSTORE_EXT_TRACE")
    if not directory:
        return None
    try:
        steps = Steps.parse(os.environ.get("KVSTORE_EXT_TRACE_STEPS"))
    except ValueError as error:
        raise OptionError(f"KVSTORE_EXT_TRACE_STEPS: {error}") from None
    return os.path.abspath(directory), steps


def launcher_reports() -> Optional[str]:
    """The socket for what the launcher is told (launch_reports.py); None where none listens."""
    return os.environ.get("KVSTORE_EXT_REPORTS") or None


def notice() -> float:
    """Seconds that a process has which is told to end, from KVSTORE_EXT_NOTICE; 30, as batch
    systems and Kubernetes have it, without. Raises OptionError for what is none."""
    text = os.environ.get("KVSTORE_EXT_NOTICE") or "30"
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?", text) or not 0 < float(text) <= MAX_NOTICE:
        raise OptionError(
            f"KVSTORE_EXT_NOTICE is {text!r}; it must be seconds above 0, up to {MAX_NOTICE}"
        )
    return float(text)


def servers_are_ours() -> bool:
    """Whether the launcher of this job says that its servers are kvstore_ext's."""
    return os.environ.get("KVSTORE_EXT_SERVERS") == "kvstore_ext"


def refuse_other_p3() -> None:
    """Raises OptionError where the environment asks for MXNet's own P3: by that MXNet takes every
    store for one that cannot update parameters."""
    name = "DMLC_PS_VAN_TYPE"
    if os.environ.get(name) == "p3":
        raise OptionError(
            f"{name} is 'p3', which is MXNet's own P3; it must not be set where the stores of "
            "kvstore_ext are used"
        )


def _big_array() -> int:
    name = "MXNET_KVSTORE_BIGARRAY_BOUND"
    return _count(name, 1 << 62) if name in os.environ else 1_000_000


def _resending() -> float:
    """Long enough for two more attempts, of which the second comes three times PS_RESEND_TIMEOUT
    after the first one was lost; ps-lite aborts a process that gets no answer to ten of them."""
    if os.environ.get("PS_RESEND", "0") in ("", "0"):
        return 0.0
    name = "PS_RESEND_TIMEOUT"
    milliseconds = _count(name) if name in os.environ else 1000
    return min(4.0, 0.0035 * milliseconds)


def _job_name() -> str:
    name = os.environ.get("KVSTORE_EXT_JOB", "")
    if not re.fullmatch("[!-~]{0,64}", name):
        raise OptionError(
            f"KVSTORE_EXT_JOB is {name!r}; it must be up to 64 characters of ASCII without spaces"
        )
    return name


def _count(name: str, most: int = 1 << 20) -> int:
    text = os.environ.get(name)
    # C's atoi reads them too, so only the digits that it knows.
    if text is None or not re.fullmatch("[0-9]+", text) or not 1 <= int(text) <= most:
        found = "not set" if text is None else repr(text)
        raise OptionError(f"{name} is {found}; it must be a number from 1 to {most}")
    return int(text)
