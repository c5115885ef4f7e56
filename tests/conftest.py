"""Gives tests a cluster, and shows what its processes wrote when a test fails."""
from __future__ import annotations

import os
import warnings
from typing import Any, Iterator

import hypothesis
import pytest

from tests.support import forked
from tests.support.cluster import Cluster
from tests.support.system_packages import last_line

with warnings.catch_warnings():  # mxnet's own, about NumPy and distutils
    warnings.simplefilter("ignore", DeprecationWarning)
    import kvstore_ext  # noqa: F401 - before any test imports mxnet

# The machine may be busy: how long an example takes says nothing.
hypothesis.settings.register_profile("all", deadline=None, print_blob=True)
hypothesis.settings.register_profile("kvstore_ext", hypothesis.settings.get_profile("all"),
                                     max_examples=40)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run every combination, not a selection")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "all_only: left out without --all")
    forked.as_users_do = config.getoption("--all")
    hypothesis.settings.load_profile("all" if config.getoption("--all") else "kvstore_ext")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.support.long_files import LongFilesFirst

    return LongFilesFirst(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all"):
        return
    left_out = [item for item in items if item.get_closest_marker("all_only")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    # The width of a terminal that is not there, which importing readline leaves to later tests and
    # to what they start: in C's environment, of which Python's need not know.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
        os.unsetenv(name)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """For a test's own jobs."""
    yield from _cluster(tmp_path_factory)


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """For jobs that several tests of a module look at."""
    yield from _cluster(tmp_path_factory)


_clusters: list[Cluster] = []  # that are in use


def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    _clusters.append(cluster)
    try:
        yield cluster
    finally:
        _clusters.remove(cluster)
        cluster.end()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends with the packages for which tests were skipped."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    line = last_line(report.longrepr[2] for report in skipped)
    if line:
        reporter.write_line(line)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    texts = [job.report() for cluster in _clusters for job in cluster.jobs]
    if report.failed and texts:
        report.sections.append(("processes", "\n".join(texts)))
