"""The host itself: its system, memory and clock."""
from __future__ import annotations

import ctypes
import os
import platform
import time
from typing import Tuple

from .finding import Finding, note, wrong

_GIB = 1 << 30
_ENOUGH = 1 * _GIB  # bytes, which a worker and a server of a small model take
# Of version 2 and 1: the limit, what is used of it, and which part of that files take in the end,
# which the kernel gives back when it is needed.
_CGROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)
_TIME_ERROR = 5  # what adjtimex returns while nothing keeps the clock right


def system() -> Finding:
    """The operating system, which has to be Linux."""
    library = " ".join(platform.libc_ver())
    found = f"{platform.system()} {platform.release()}, {platform.machine()}, {library}"
    if platform.system() == "Linux":
        return Finding("system", found)
    return wrong("system", found, "run it on Linux, in a container or a virtual machine")


def memory() -> Finding:
    """What there is of memory, and what is left of it; a container's limit counts as well."""
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    total, available = (
        int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable")
    )
    limit, used = _of_container()
    if limit < total:
        total, available = limit, max(0, min(limit - used, available))
    found = f"{total / _GIB:.1f} GiB, of which {available / _GIB:.1f} GiB are free"
    if available >= _ENOUGH:
        return Finding("memory", found)
    remedy = "end other processes or give the container more: MXNet itself takes 0.3 GiB a process"
    return wrong("memory", found, remedy)


def clock() -> Finding:
    """The time, and whether the kernel is told the right one; -H compares hosts."""
    found = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    # The kernel's structure is smaller than this; all zero, it asks and sets nothing.
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024))
    if state == -1:
        return note("clock", f"{found}; the kernel does not tell who keeps it")
    if state != _TIME_ERROR:
        return Finding("clock", f"{found}, kept by the network")
    remedy = "for logs of several hosts: start chrony or systemd-timesyncd"
    return note("clock", f"{found}, kept by nobody", remedy)


def _of_container() -> Tuple[int, int]:
    """The bytes that this process's control group may use, or what no host has; and those that it
    uses."""
    for directory, limit, usage, files in _CGROUPS:
        text = _read(directory, limit)
        if text.isdigit():
            said = f"{usage} {_read(directory, usage)}\n{_read(directory, 'memory.stat')}"
            fields = dict(line.split() for line in said.splitlines() if len(line.split()) == 2)
            used = int(fields.get(usage, 0)) - int(fields.get(files, 0))
            return int(text), max(0, used)
        if text:
            break
    return 1 << 62, 0


def _read(directory: str, name: str) -> str:
    """What a file of a control group says; nothing where there is none."""
    try:
        with open(os.path.join(directory, name), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
