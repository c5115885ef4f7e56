"""A training in which processes are stopped and hosts cut off ends with the same bits."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.results import assert_same_bits, load
from tests.support.system_packages import need, needs_root

from . import chaos

SHORT = chaos.Settings(2, 1, 40, pause=0.1, every=1.0, events=2)
SEED = 1  # of which a worker is stopped, and a host cut off


@needs_root
def test_a_disturbed_training_has_the_bits_of_an_undisturbed_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Of `make chaos` two events."""
    need("tc")
    steps = SHORT.steps
    cluster.run(chaos.TRAIN, tmp_path, "undisturbed", steps, 0, options=chaos.OPTIONS)
    job, found = chaos.run(SHORT, SEED, tmp_path, "disturbed")
    assert job.wait() == 0, job.errors
    assert [re.sub(".* is ", "", event) for event in found.events] == ["stopped", "cut off"]
    assert any(line.startswith("launch: restart 2 of") for line in job.errors), job.errors
    for rank in range(SHORT.workers):
        after, whole = (load(tmp_path, name, rank) for name in ("disturbed", "undisturbed"))
        assert_same_bits(after, whole, f"of worker {rank}")
