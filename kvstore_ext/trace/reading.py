"""Reads what the processes of a job have recorded: `read(directory)`."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

import numpy as np

from .clocks import Clock, bring_together
from .events import EVENT, Kind, Message

_MAGIC = b"kvxtrace"
_HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("event", "<u4"), ("capacity", "<u8"),
                    ("claimed", "<u8")])  # fmt: skip
_EVENTS_AT = 4096  # bytes from the start of the file
_VERSION = 1
_BYTES_END = 1 << 32  # of an event's `bytes`


class TraceError(ValueError):
    """A directory that has no trace, or a file that is none."""


@dataclass(frozen=True)
class SliceInfo:
    """A part of a key on one server; `offset` and `elements` count elements of the key."""

    index: int
    server: int
    offset: int
    elements: int


@dataclass(frozen=True)
class KeyInfo:
    """A key as the workers have declared it; `method` is what its codec says of itself."""

    identity: int  # `key` of events
    name: str
    dtype: str
    elements: int
    method: str
    slices: Tuple[SliceInfo, ...]


@dataclass(frozen=True)
class ProcessTrace:
    """What one process has recorded.

    Attributes
    ----------
    role, rank
        "worker" or "server", and its rank among them.
    host, pid
        Where it ran; "" and 0 where that is not known.
    events
        Records of `EVENT`, shape (n,), in the order of `begin`. Times are nanoseconds on the job's
        one clock, mostly worker 0's.
    clock
        How its own clock was brought to that one, and how exactly.
    dropped
        Events for which the buffer had no room.
    options
        The store's options by name; empty at a server.
    layers
        Names of layers, by the numbers that are FORWARD's and BACKWARD's `key`; empty where the
        process was killed before it could write them, and only the first where it could not write
        all.
    complete
        Whether the process came to its end, and could say so.
    job
        Which job's it is; "" where that is not known.
    """

    role: str
    rank: int
    host: str
    pid: int
    events: np.ndarray
    clock: Clock = field(default_factory=Clock)
    dropped: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    layers: Tuple[str, ...] = ()
    complete: bool = True
    job: str = ""

    @property
    def name(self) -> str:
        """As errors name it: "worker 0"."""
        return f"{self.role} {self.rank}"

    def of_kind(self, *kinds: Kind) -> np.ndarray:
        """Its events of these kinds."""
        return self.events[np.isin(self.events["kind"], [int(kind) for kind in kinds])]

    def gradients(self) -> np.ndarray:
        """Its events of READY of gradients, which first values are not."""
        ready = self.of_kind(Kind.READY)
        return ready[(ready["message"] == Message.PUSH) & (ready["round"] > 0)]

    @cached_property  # since a report asks for them again and again
    def exchanges(self) -> np.ndarray:
        """Its events of DONE of gradients, each until the result was first written.

        Where a script pushes and pulls in two calls, that is done by the second operation.
        """
        done = self.of_kind(Kind.DONE)
        done = done[done["message"] == Message.PUSH]
        written = _first_of_each_slice(self.of_kind(Kind.WRITTEN))
        both = np.concatenate((done, written))
        places = np.unique(both["key"], return_inverse=True)[1]
        rounds = places * (int(both["round"].max(initial=0)) + 1) + both["round"]
        found, names = np.unique(rounds, return_inverse=True)  # of steps far on, too, they are few
        ends = np.full(len(found), np.iinfo(np.int64).min)
        np.maximum.at(ends, names[len(done) :], written["end"])
        done["end"] = np.maximum(done["end"], ends[names[: len(done)]])
        return done

    def passes(self, kind: Kind) -> np.ndarray:
        """Its events of FORWARD or BACKWARD, those of layers alone whose names are in `layers`."""
        events = self.of_kind(kind)
        return events[events["key"] < len(self.layers)]


@dataclass(frozen=True)
class JobTrace:
    """What all processes have recorded: workers by rank, then servers; and the job's keys."""

    processes: Tuple[ProcessTrace, ...]
    keys: Mapping[int, KeyInfo]

    @property
    def workers(self) -> List[ProcessTrace]:
        """In the order of ranks."""
        return [process for process in self.processes if process.role == "worker"]

    @property
    def servers(self) -> List[ProcessTrace]:
        """In the order of ranks."""
        return [process for process in self.processes if process.role == "server"]

    def plain_bytes(self, ready: np.ndarray) -> np.ndarray:
        """What gradients have as numbers, of events of READY, shape (n,): an event's `bytes` end
        at 4 GiB, and begin again with 0."""
        identities, places = np.unique(ready["key"], return_inverse=True)
        known = (self.keys.get(int(identity)) for identity in identities)
        sizes = [0 if key is None else key.elements * np.dtype(key.dtype).itemsize for key in known]
        whole = np.array(sizes, np.int64)[places]
        told = ready["bytes"].astype(np.int64)
        return np.where(told == whole % _BYTES_END, whole, told)

    def name_of(self, key: int) -> str:
        """A key's name, or its number where no worker has declared it."""
        return self.keys[key].name if key in self.keys else str(key)


def _first_of_each_slice(events: np.ndarray) -> np.ndarray:
    """Of each slice in each round the event that ended first."""
    fields = ("key", "round", "slice")
    events = events[np.lexsort((events["end"], *(events[field] for field in fields)))]
    new = np.ones(len(events), bool)
    new[1:] = np.any([events[field][1:] != events[field][:-1] for field in fields], axis=0)
    return events[new]


def read(directory: Union[str, Path]) -> JobTrace:
    """Reads a trace, whose processes may have ended as they would.

    Parameters
    ----------
    directory
        Where the files of all processes lie, in it or below it.

    Returns
    -------
    JobTrace
        With all times on one clock, in nanoseconds.

    Raises
    ------
    TraceError
        Where the directory has none, one of two jobs or two of one process, or a file that is none,
        or of another version.
    """
    found = sorted(Path(directory).glob("**/*.events"))
    if not found:
        raise TraceError(f"{directory} has no trace: no file whose name ends with .events")
    keys: Dict[int, KeyInfo] = {}
    processes = [_process(file, keys) for file in found]
    _check_that_they_are_one_trace(directory, found, processes)
    processes.sort(key=lambda process: (process.role != "worker", process.rank))
    return JobTrace(tuple(bring_together(processes)), keys)


def _check_that_they_are_one_trace(
    directory: Union[str, Path], files: Sequence[Path], processes: Sequence[ProcessTrace]
) -> None:
    first: Dict[str, Path] = {}
    for file, process in zip(files, processes):
        if process.job != processes[0].job:
            first_job, job = (files[0], processes[0].job), (file, process.job)
            raise TraceError(_of_two_jobs(directory, first_job, job))
        if process.name in first:
            raise TraceError(
                f"{directory} has two traces of {process.name}: {first[process.name]} and {file}; "
                "give the directory of one of them"
            )
        first[process.name] = file


def _of_two_jobs(
    directory: Union[str, Path], one: Tuple[Path, str], other: Tuple[Path, str]
) -> str:
    """Why two files, each with its job, are not of one trace."""
    for file, job in (one, other):
        if not job:
            return (
                f"{file} does not say of which job it is, and others do: "
                f"{file.with_suffix('.json').name} beside it is missing, or is cut off; bring "
                f"that, or remove {file.name}"
            )
    return (
        f"{directory} has traces of two jobs: {one[0]} is of job {one[1]}, {other[0]} of job "
        f"{other[1]}; give the directory of one of them, or remove the other's files"
    )


def _process(file: Path, keys: Dict[int, KeyInfo]) -> ProcessTrace:
    named = re.fullmatch(r"(worker|server)-(\d+)", file.stem)
    if named is None:
        raise TraceError(
            f"{file} has another name than that of a process's trace, which is worker-RANK.events "
            "or server-RANK.events"
        )
    events, dropped = _events(file)
    about: Dict[str, Any] = {"role": named[1], "rank": int(named[2]), "host": "", "pid": 0}
    clock, layers, complete = "", [], False
    for line in _lines(file.with_suffix(".json")):
        if "process" in line:
            about.update(line["process"])
            clock = about.pop("clock", "")
        elif "key" in line:
            info = _key(line["key"])
            keys[info.identity] = info
        elif "layer" in line:
            layers.append(line["layer"])
        complete = complete or "end" in line
    return ProcessTrace(
        events=events,
        clock=Clock(name=clock),
        dropped=dropped,
        layers=tuple(layers),
        complete=complete,
        **about,
    )


def _events(file: Path) -> Tuple[np.ndarray, int]:
    size = file.stat().st_size
    if size < _EVENTS_AT:
        raise TraceError(f"{file} is no trace: it has {size} bytes")
    header = np.fromfile(file, _HEADER, count=1)[0]
    if bytes(header["magic"]) != _MAGIC:
        raise TraceError(f"{file} is no trace")
    if header["version"] != _VERSION or header["event"] != EVENT.itemsize:
        raise TraceError(
            f"{file} is a trace of version {header['version']}; this kvstore_ext reads {_VERSION}"
        )
    claimed, capacity = int(header["claimed"]), int(header["capacity"])
    count = min(claimed, capacity)
    least = _EVENTS_AT + count * EVENT.itemsize
    if size < least:
        raise TraceError(
            f"{file} is cut off: it has {size} bytes of at least {least}; copy it again"
        )
    # That of a killed process has all its room behind them.
    written: Any = np.fromfile(file, EVENT, count=count, offset=_EVENTS_AT)
    events = written[written["kind"] != Kind.NOTHING]
    return events[np.argsort(events["begin"], kind="stable")], max(0, claimed - capacity)


def _lines(file: Path) -> List[Dict[str, Any]]:
    """What is said about a process; the last line may be cut off, where that was killed."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def _key(said: Dict[str, Any]) -> KeyInfo:
    slices = tuple(SliceInfo(*each) for each in said["slices"])
    return KeyInfo(
        identity=said["identity"],
        name=said["name"],
        dtype=said["dtype"],
        elements=said["elements"],
        method=said["method"],
        slices=slices,
    )
