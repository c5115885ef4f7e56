"""Python, NumPy, MXNet, the compiled core, and the devices that MXNet can use."""
from __future__ import annotations

import os
import platform
import re
import sys

from ..mxnet_hooks.before_import import NEEDED_MXNET, NEEDED_NUMPY
from .finding import Finding, note, wrong
from .imports import Facts

_PYTHONS = ((3, 8), (3, 12))

_INSTALL_NUMPY = f"pip install '{NEEDED_NUMPY}'"
_INSTALL_MXNET = f"pip install mxnet=={NEEDED_MXNET}   (for GPUs: mxnet-cu112=={NEEDED_MXNET})"
_INSTALL_KVSTORE_EXT = "pip install . in the checkout of kvstore_ext, which compiles its core"

# What an import fails of, and what helps.
_REMEDIES = (
    (r"ImportError: .*: (pip install .*)", r"\1"),  # of our own, which says it already
    (r"No module named 'numpy'", _INSTALL_NUMPY),
    (r"module 'numpy' has no attribute|numpy\.core|_ARRAY_API", _INSTALL_NUMPY),
    (r"No module named 'distutils'", "pip install setuptools"),
    (r"No module named 'mxnet'|needs mxnet", _INSTALL_MXNET),
    (r"No module named '(\w+)'", r"pip install \1"),
    (
        r"lib(cuda|cudart|cublas|cudnn|nccl|nvrtc|cufft|curand|cusolver)\b.*cannot open",
        f"install CUDA 11.2 and cuDNN 8, or MXNet for CPUs: pip install mxnet=={NEEDED_MXNET}",
    ),
    (r"(lib\S+): cannot open shared object", r"install the system's package that has \1"),
    (r"status -4\b", "MXNet needs instructions that this processor lacks: use another host"),
)


def python() -> Finding:
    """The interpreter, which has to be one that MXNet runs on."""
    least, most = _PYTHONS
    found = f"{platform.python_version()}, {sys.executable}"
    if least <= sys.version_info[:2] <= most:
        return Finding("python", found)
    allowed = f"{least[0]}.{least[1]} to {most[0]}.{most[1]}"
    return wrong("python", found, f"make an environment with Python {allowed}, and install there")


def numpy(imports: dict[str, Facts]) -> Finding:
    """NumPy, of which MXNet uses names that newer ones do not have."""
    facts = imports["numpy"]
    if "error" in facts:
        found = f"cannot be imported: {facts['error']}"
        return wrong("numpy", found, _remedy(facts, _INSTALL_NUMPY))
    version = str(facts["version"])
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers >= (2, 0):
        return wrong("numpy", f"{version}, which MXNet cannot use", _INSTALL_NUMPY)
    if numbers < (1, 24):
        return Finding("numpy", version)
    found = f"{version}, with which `import mxnet` works only after `import kvstore_ext`"
    if sys.version_info < (3, 12):
        return wrong("numpy", found, _INSTALL_NUMPY)
    return note("numpy", found, "begin scripts with that, or make an environment with Python 3.11")


def mxnet(imports: dict[str, Facts]) -> Finding:
    """MXNet, imported as a script does that does not know of kvstore_ext."""
    facts = imports.get("mxnet")
    if facts is None:
        return wrong("mxnet", "not tried: it needs numpy", "mend numpy, then run this again")
    if "error" not in facts:
        found = f"{facts['version']}, {facts['library']}"
        if facts["version"] != NEEDED_MXNET:
            return wrong("mxnet", found, _INSTALL_MXNET)
        return Finding("mxnet", found)
    by_us = "error" not in imports["kvstore_ext"]
    if by_us and sys.version_info >= (3, 12):
        return note("mxnet", f"{NEEDED_MXNET}, imported by `import kvstore_ext` alone")
    found = f"cannot be imported: {facts['error']}"
    return wrong("mxnet", found, _remedy(facts, _INSTALL_MXNET))


def libmxnet(imports: dict[str, Facts]) -> Finding:
    """Whether libmxnet.so has the functions that the core calls, laid out as it expects."""
    ours, facts = imports["kvstore_ext"], imports.get("mxnet", {})
    if "error" not in ours:
        return Finding("libmxnet", "has the functions and structures that kvstore_ext uses")
    refused = re.search(r"does not fit: (.*)", ours["error"])
    if refused:
        return wrong("libmxnet", refused.group(1), _INSTALL_MXNET)
    if facts.get("distributed") is False:
        return wrong("libmxnet", "was built without ps-lite (USE_DIST_KVSTORE)", _INSTALL_MXNET)
    return note("libmxnet", "not tried: only kvstore_ext, once imported, can look at it")


def kvstore_ext(imports: dict[str, Facts]) -> Finding:
    """The package with its compiled core."""
    facts = imports["kvstore_ext"]
    if "error" in facts:
        return wrong(
            "kvstore_ext",
            f"cannot be imported: {facts['error']}",
            _remedy(facts, _INSTALL_KVSTORE_EXT),
        )
    return Finding("kvstore_ext", f"{facts['version']}, {facts['directory']}")


def kernels(imports: dict[str, Facts]) -> Finding:
    """The instruction set by which gradients are compressed; all give the same bits."""
    found = imports["kvstore_ext"].get("kernels")
    if found is None:
        return note("kernels", "not known without kvstore_ext")
    return Finding("kernels", f"{found[-1]}, of {', '.join(found)}")


def encryption(imports: dict[str, Facts]) -> Finding:
    """The cipher of jobs that have a key, as those of several hosts do by default."""
    facts = imports["kvstore_ext"]
    if "cipher" in facts:
        return Finding("encryption", f"AES-256-GCM of {facts['cipher']}")
    if "refused_cipher" not in facts:
        return note("encryption", "not known without kvstore_ext")
    found, _, remedy = facts["refused_cipher"].partition(": ")
    return wrong("encryption", found, f"{remedy}, or start jobs with --no-secure")


def devices(imports: dict[str, Facts]) -> Finding:
    """Processors that this process may use, and GPUs that MXNet can."""
    processors = f"{len(os.sched_getaffinity(0))} processors"
    facts = imports.get("mxnet", {})
    if "gpus" not in facts:
        return Finding("devices", processors)
    if facts["gpus"]:
        return Finding("devices", f"{processors}, {facts['gpus']} GPUs")
    has_driver = os.path.exists("/proc/driver/nvidia/version")
    if facts["cuda"]:
        remedy = "check `nvidia-smi`, the driver and CUDA_VISIBLE_DEVICES"
        return wrong("devices", f"{processors}; MXNet is built for GPUs and finds none", remedy)
    if has_driver:
        remedy = f"for GPUs: pip install mxnet-cu112=={NEEDED_MXNET}"
        return note("devices", f"{processors}; MXNet for CPUs, although there are GPUs", remedy)
    return Finding("devices", f"{processors}, no GPU")


def _remedy(facts: Facts, usual: str) -> str:
    """What helps against an import's error, or what usually does."""
    for pattern, remedy in _REMEDIES:
        match = re.search(pattern, facts["error"])
        if match:
            return match.expand(remedy)
    return usual
