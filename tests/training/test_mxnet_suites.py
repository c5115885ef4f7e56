"""MXNet's own distributed suites pass with p3 in place of dist_sync: `make test-all` runs them.

They are those of its integrationtest_ubuntu_cpu_dist_kvstore (ci/docker/runtime_functions.sh), from
the checkout of MXNet that MXNET_SOURCE names, or from a clone.
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
MAIN = "dist_sync_kvstore.py"
FILES = (MAIN, "test_kvstore.py", "test_server_profiling.py")
SUITES = [
    (MAIN, "--type=gluon_step_cpu"),
    (MAIN, "--type=gluon_sparse_step_cpu"),
    (MAIN, "--type=invalid_cpu"),
    (MAIN, "--type=gluon_type_cpu"),
    (MAIN, "--type=default_cpu"),
    (MAIN, "--type=default_cpu", "--no-multiprecision"),
    (MAIN, "--type=compressed_cpu"),
    (MAIN, "--type=compressed_cpu", "--no-multiprecision"),
    ("test_server_profiling.py",),
]

pytestmark = pytest.mark.all_only


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the suites in a checkout of MXNet."""
    given = os.environ.get("MXNET_SOURCE")
    if given is not None:
        found = Path(given) / NIGHTLY
        if not (found / MAIN).exists():
            pytest.fail(f"MXNET_SOURCE is {given}, which has no {NIGHTLY / MAIN}", pytrace=False)
        return found
    clone = tmp_path_factory.mktemp("mxnet")
    how = ["--quiet", "--depth=1", f"--branch={RELEASE}", "--filter=blob:none", "--sparse"]
    for command in (
        ["git", "clone", *how, REPOSITORY, str(clone)],
        ["git", "-C", str(clone), "sparse-checkout", "set", str(NIGHTLY)],
    ):
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            pytest.fail(
                f"these tests need a checkout of MXNet {RELEASE}: set MXNET_SOURCE to its "
                f"directory, since {REPOSITORY} cannot be cloned",
                pytrace=False,
            )
    return clone / NIGHTLY


@pytest.fixture
def suites(source: Path, tmp_path: Path) -> Path:
    """A directory that has the suites and nothing else of MXNet, which they would import."""
    for name in FILES:
        shutil.copy(source / name, tmp_path)
    # Python 3 divides into floats.
    main = tmp_path / MAIN
    text = main.read_text()
    assert text.count("num_rows/2") == 2
    main.write_text(text.replace("num_rows/2", "num_rows//2"))
    return tmp_path


@pytest.mark.parametrize("suite", SUITES, ids=" ".join)
def test_a_suite_of_mxnet_passes(cluster: Cluster, suites: Path, suite: tuple[str, ...]) -> None:
    script, *arguments = suite
    workers = 7 if script == MAIN else 3  # as MXNet runs them
    job = cluster.start(
        SCRIPTS / "run_replaced.py",
        suites / script,
        *arguments,
        workers=workers,
        servers=workers,
        directory=suites,
    )
    job.wait(600)
