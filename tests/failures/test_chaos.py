"""A training whose processes are killed and stopped and its hosts cut off has the same bits."""
from __future__ import annotations

from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.results import assert_same_bits, load
from tests.support.system_packages import need, needs_root

from . import chaos

SHORT = chaos.Settings(2, 1, 50, pause=0.1, every=1.0, events=3, away=8.0)
SEED = 27
HAPPENS = ["server 0 is killed", "worker 1 is stopped", "worker 0 is cut off"]  # by that seed


@needs_root
def test_a_disturbed_training_has_the_bits_of_an_undisturbed_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Of `make chaos` three events."""
    need("tc")
    steps = SHORT.steps
    alone = cluster.start(chaos.TRAIN, tmp_path, "undisturbed", steps, 0, options=chaos.OPTIONS)
    job, found = chaos.run(SHORT, SEED, tmp_path, "disturbed")
    assert job.wait() == 0, job.errors
    alone.wait()
    assert [event.split(": ")[1] for event in found.events] == HAPPENS
    assert any(line.startswith("launch: restart 3 of") for line in job.errors), job.errors
    assert chaos.begins(tmp_path, "disturbed")[-1] > 0
    for rank in range(SHORT.workers):
        after, whole = (load(tmp_path, name, rank) for name in ("disturbed", "undisturbed"))
        assert_same_bits(after, whole, f"of worker {rank}")
