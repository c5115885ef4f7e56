"""The host itself: its system, memory and clock."""
from __future__ import annotations

import ctypes
import os
import platform
import time

from .finding import Finding, note, wrong

_GIB = 1 << 30
_ENOUGH = 1 * _GIB  # bytes, which a worker and a server of a small model take
_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
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
    limit = _container_limit()
    if limit < total:
        total, available = limit, min(limit, available)
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


def _container_limit() -> int:
    """The bytes that this process's control group may use, or what no host has."""
    for path in _CGROUP:
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
            return int(text) if text.isdigit() else 1 << 62
    return 1 << 62
