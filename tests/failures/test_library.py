"""An mxnet that the core does not fit is refused on import, with what was found and is needed.

The wrong ones are modules named mxnet with a shared library of a few lines for libmxnet.so.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.support.paths import ROOT, python_path
from tests.support.processes import run_python

PACKAGE = """
import ctypes
import types

__version__ = {version!r}
library = {library!r}
if library:
    ctypes.CDLL(library)
libinfo = types.SimpleNamespace(find_lib_path=lambda: [library])
"""

# What the core looks for. The two functions that translate a message forget all of it.
CORE = ROOT / "kvstore_ext" / "csrc" / "transport" / "libmxnet.cc"
SYMBOLS = [
    symbol
    for symbol in re.findall(r'bind\("(\w+)"', CORE.read_text())
    if "PackMeta" not in symbol and "UnpackMeta" not in symbol
]
FORGETFUL = """
#include <stdlib.h>
void _ZN2ps3Van8PackMetaERKNS_4MetaEPPcPi(void* van, void* meta, char** buffer, int* size) {
  *buffer = malloc(1);
  *size = 1;
}
void _ZN2ps3Van10UnpackMetaEPKciPNS_4MetaE(void* van, char* buffer, int size, void* meta) {}
""" + "".join(f"void {symbol}(void) {{}}\n" for symbol in SYMBOLS)


def import_with(directory: Path, version: str, code: str | None) -> str:
    """What `import kvstore_ext` fails with, beside an mxnet of this version and library code."""
    library = ""
    if code is not None:
        library = str(directory / "libmxnet.so")
        source = directory / "libmxnet.c"
        source.write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(source)], check=True)
    (directory / "mxnet.py").write_text(PACKAGE.format(version=version, library=library))
    path = {"PYTHONPATH": python_path(directory)}
    ended = run_python("-c", "import kvstore_ext", status=1, environment=path)
    return ended.stderr.strip().splitlines()[-1]


def test_another_version_is_refused(tmp_path: Path) -> None:
    error = import_with(tmp_path, "1.8.0", None)
    found = "kvstore_ext needs mxnet 1.9.1; found mxnet 1.8.0"
    way_out = "pip install mxnet==1.9.1 (for GPUs mxnet-cu112==1.9.1)"
    assert error == f"ImportError: {found}: {way_out}"


def test_a_library_without_ps_lite_is_refused(tmp_path: Path) -> None:
    error = import_with(tmp_path, "1.9.1", "void MXGetLastError(void) {}\n")
    assert error.startswith("ImportError: ")
    assert f"mxnet 1.9.1 at {tmp_path / 'libmxnet.so'}" in error
    assert "has no _ZN2ps10Postoffice3GetEv" in error
    assert "needs mxnet 1.9.1 built with ps-lite" in error


def test_a_library_with_another_layout_is_refused(tmp_path: Path) -> None:
    error = import_with(tmp_path, "1.9.1", FORGETFUL)
    assert error.startswith("ImportError: ")
    assert f"mxnet 1.9.1 at {tmp_path / 'libmxnet.so'}" in error
    assert "lays out ps-lite's messages differently from mxnet 1.9.1" in error


def test_mxnet_imported_first_is_warned_of() -> None:
    # Which the tests have by their own import.
    environment = {name: None for name in os.environ if "BULK_EXEC" in name}
    ended = run_python("-c", "import mxnet, kvstore_ext", environment=environment)
    assert ended.stderr.count("mxnet was imported before kvstore_ext") == 1
    assert "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN=1" in ended.stderr
