"""A recording of this process: from when it is traced until that ends."""
from __future__ import annotations

import contextlib
import json
import os
import socket
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Sequence, Set, Tuple

from ..notes import say
from .steps import Steps

# Number, name, type, elements, method, and slices: index, offset, elements, server.
Key = Tuple[int, str, str, int, str, List[Tuple[int, int, int, int]]]


class Recording:
    """Two files of one process: its events, which the core writes, and a few lines about them.

    The events are in the file whatever becomes of the process; the last lines only if it can still
    write them.

    Parameters
    ----------
    recorder
        The core's, of a worker or a server.
    job
        Which job that is: what no other job has alike.
    role, rank
        Whose it is.
    directory
        Where the files go; it is made.
    steps
        What is recorded.
    most_events
        For how many there is room, 48 bytes each; others are counted.
    options
        The store's, to be told by whoever reads the trace.

    Raises
    ------
    OSError
        Where the directory or the files cannot be made, the disk has no room for them, or this
        process has recorded into the same files before.
    """

    _of_process: ClassVar[Set[str]] = set()  # paths

    def __init__(
        self,
        recorder: Any,
        job: str,
        role: str,
        rank: int,
        directory: str,
        steps: Steps,
        most_events: int,
        options: Mapping[str, Any],
    ) -> None:
        self._recorder = recorder
        self._name = f"{role} {rank}"
        os.makedirs(directory, exist_ok=True)
        file = Path(directory, f"{role}-{rank}.events")
        self._about = file.with_suffix(".json")
        self.path = str(file.with_suffix("").absolute())  # without the two endings
        if self.path in self._of_process:
            raise OSError(
                f"{directory} has a trace of this process already: name another directory"
            )
        try:
            recorder.open(str(file), most_events, steps.first, steps.last)
        except RuntimeError as error:
            raise OSError(str(error)) from None
        try:
            with contextlib.suppress(FileNotFoundError):
                self._about.unlink()  # an earlier trace's, or a link that somebody has put there
            self._about.touch(exist_ok=False)
        except OSError:
            recorder.close()
            raise
        self._of_process.add(self.path)
        process = {
            "job": job,
            "role": role,
            "rank": rank,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "clock": clock_of_this_process(),
            "options": dict(options),
        }
        self._say([{"process": process}])

    def end(self, keys: Sequence[Key] = (), layers: Sequence[str] = ()) -> None:
        """Closes the files.

        Parameters
        ----------
        keys
            What is known of the keys, as `Worker.declared` of the core has it.
        layers
            Their names, in the order of their numbers.
        """
        self._recorder.close()
        lines: List[Dict[str, Any]] = [
            {
                "key": {
                    "identity": identity,
                    "name": name,
                    "dtype": dtype,
                    "elements": elements,
                    "method": method,
                    "slices": [
                        (index, server, offset, length) for index, offset, length, server in slices
                    ],
                }
            }
            for identity, name, dtype, elements, method, slices in keys
        ]
        lines += [{"layer": layer} for layer in layers]
        with contextlib.suppress(OSError):  # of a disk that is full by now
            self._say([*lines, {"end": True}])
        dropped = self._recorder.dropped()
        if dropped:
            say(
                f"the trace of {self._name} leaves out the last {dropped} events: the "
                f"buffer holds {self._recorder.recorded()}. Trace fewer steps, or set the option "
                "trace_events"
            )

    def _say(self, lines: Sequence[Mapping[str, Any]]) -> None:
        with self._about.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def clock_of_this_process() -> str:
    """A name of the kernel's clock that counts here, which all processes with the same name read:
    that of a running kernel, and of the time namespace, where there are any."""
    names: List[str] = []
    with contextlib.suppress(OSError):
        names.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink("/proc/self/ns/time"))
    return " ".join(names)
