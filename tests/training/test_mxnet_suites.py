"""MXNet's own distributed suites pass with p3 in place of dist_sync: `make test-all` runs them.

They are those of its integrationtest_ubuntu_cpu_dist_kvstore (ci/docker/runtime_functions.sh), from
the checkout of MXNet that MXNET_SOURCE names, or from a clone. Only test_server_profiling.py is not
among them: it reads profiles that other processes still write, and fails with MXNet's own store.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.paths import SCRIPTS

RELEASE = "1.9.1"
REPOSITORY = "https://github.com/apache/mxnet"
NIGHTLY = Path("tests", "nightly")
SCRIPT = "dist_sync_kvstore.py"
BESIDE = "test_kvstore.py"  # which it imports
SUITES = [
    ("--type=gluon_step_cpu",),
    ("--type=gluon_sparse_step_cpu",),
    ("--type=invalid_cpu",),
    ("--type=gluon_type_cpu",),
    ("--type=default_cpu",),
    ("--type=default_cpu", "--no-multiprecision"),
    ("--type=compressed_cpu",),
    ("--type=compressed_cpu", "--no-multiprecision"),
]

pytestmark = pytest.mark.all_only


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the suites in a checkout of MXNet."""
    given = os.environ.get("MXNET_SOURCE")
    if given is not None:
        found = Path(given) / NIGHTLY
        if not (found / SCRIPT).exists():
            pytest.fail(f"MXNET_SOURCE is {given}, which has no {NIGHTLY / SCRIPT}", pytrace=False)
        return found
    clone = tmp_path_factory.mktemp("mxnet")
    how = ["--quiet", "--depth=1", f"--branch={RELEASE}", "--filter=blob:none", "--sparse"]
    for command in (
        ["git", "clone", *how, REPOSITORY, str(clone)],
        ["git", "-C", str(clone), "sparse-checkout", "set", str(NIGHTLY)],
    ):
        if not _succeeds(command):
            pytest.fail(
                f"these tests need a checkout of MXNet {RELEASE}: set MXNET_SOURCE to its "
                f"directory, since {REPOSITORY} cannot be cloned",
                pytrace=False,
            )
    return clone / NIGHTLY


def _succeeds(command: list[str]) -> bool:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        ended = subprocess.run(
            command, env=environment, capture_output=True, timeout=600, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0


@pytest.fixture
def directory(source: Path, tmp_path: Path) -> Path:
    """One that has the script and nothing else of MXNet, which it would import."""
    for name in (SCRIPT, BESIDE):
        shutil.copy(source / name, tmp_path)
    # Python 3 divides into floats.
    script = tmp_path / SCRIPT
    text = script.read_text()
    assert text.count("num_rows/2") == 2
    script.write_text(text.replace("num_rows/2", "num_rows//2"))
    return tmp_path


@pytest.mark.parametrize("suite", SUITES, ids=" ".join)
def test_a_suite_passes(cluster: Cluster, directory: Path, suite: tuple[str, ...]) -> None:
    job = cluster.start(
        SCRIPTS / "run_replaced.py",
        directory / SCRIPT,
        *suite,
        workers=7,  # as MXNet runs it
        servers=7,
        directory=directory,
    )
    job.wait(1800)  # in some, seven processes compute what they expect in Python
