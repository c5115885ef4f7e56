"""All checks of one host."""
from __future__ import annotations

import hashlib
import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import machine, network, settings, software
from .finding import WRONG, Finding
from .imports import Facts, try_imports

# Another one on each machine, and after each of its starts.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Host:
    """What the checks have found on one host, and what hosts are compared by."""

    name: str
    findings: list[Finding]
    traits: dict[str, Any]


def check_host(name: str) -> Host:
    """Runs all checks here."""
    system = machine.system()
    if system.state == WRONG:  # the other checks are Linux's, and so is what they would advise
        return Host(name, [system], {})
    imports = try_imports()
    findings = [
        system,
        software.python(),
        software.numpy(imports),
        software.mxnet(imports),
        software.libmxnet(imports),
        software.kvstore_ext(imports),
        software.kernels(imports),
        software.encryption(imports),
        software.devices(imports),
        machine.memory(),
        machine.clock(),
        network.address(),
        network.ports(),
        settings.job(imports),
        settings.options(imports),
        settings.engine(),
    ]
    return Host(name, findings, _traits(imports))


def _traits(imports: dict[str, Facts]) -> dict[str, Any]:
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "MXNet": imports.get("mxnet", {}).get("version"),
        "kvstore_ext": imports["kvstore_ext"].get("version"),
        "kvstore_ext's files": _digest(imports["kvstore_ext"].get("directory")),
        "machine": _machine(),
    }


def _machine() -> str:
    """By what this machine is told from others; its name in a sandbox that hides the kernel's."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return socket.gethostname()


def _digest(directory: str | None) -> str | None:
    """A short name of what the package's Python files contain: versions say less in a checkout."""
    if directory is None:
        return None
    digest = hashlib.sha256()
    for path in sorted(Path(directory).rglob("*.py")):
        digest.update(os.fsencode(path.relative_to(directory)) + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]
