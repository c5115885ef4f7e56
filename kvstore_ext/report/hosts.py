"""Hosts of one name, such as two that are both called ubuntu, get a number each."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Sequence, Tuple

from ..trace.reading import ProcessTrace


def told_apart(processes: Sequence[ProcessTrace]) -> Tuple[ProcessTrace, ...]:
    """The same, with "ubuntu (1)" and so on in `host` where kernels differ.

    Where a process has not recorded which kernel it ran on, its host's name stays as it is.
    """
    kernels: Dict[str, List[str]] = {}
    for process in processes:
        known, kernel = kernels.setdefault(process.host, []), _kernel(process)
        if kernel and kernel not in known:
            known.append(kernel)
    return tuple(_numbered(process, kernels[process.host]) for process in processes)


def _kernel(process: ProcessTrace) -> str:
    """The running kernel's name, which the clock's begins with; "" where that is not known."""
    return process.clock.name.partition(" ")[0]


def _numbered(process: ProcessTrace, kernels: List[str]) -> ProcessTrace:
    kernel = _kernel(process)
    if len(kernels) < 2 or not kernel:
        return process
    return replace(process, host=f"{process.host} ({kernels.index(kernel) + 1})")
