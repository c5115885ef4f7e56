"""The order in which pytest-xdist hands out files of tests: long ones first, or one process would
be left with the last of them."""
from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

LONG = [
    *[f"tests/training/test_{name}.py" for name in ("equality", "overlap")],
    *["tests/failures/test_chaos.py", "tests/install/test_places.py"],
    *["tests/launch/test_restarts.py", "tests/examples/test_train_image.py"],
    *[f"tests/training/test_{name}.py" for name in ("slim_dp", "drop_in", "memory")],
    *["tests/models/test_image_models.py", "tests/launch/test_secure.py"],
    *["tests/failures/test_training.py", "tests/failures/test_matrix.py"],
    *["tests/launch/test_ssh.py", "tests/security/test_secure_job.py"],
    *["tests/launch/test_unmodified.py", "tests/launch/test_told_to_end.py"],
    *["tests/soak/test_soak.py", "tests/security/test_attacks.py"],
    *[f"tests/failures/test_{name}.py" for name in ("silence", "damage", "opening_and_leaving")],
    *["tests/launch/test_lost.py", "tests/training/test_shared_memory.py"],
    *[f"tests/training/test_{name}.py" for name in ("snapshots", "compressed", "new_method")],
    *["tests/models/test_every_model.py", "tests/examples/test_train_sockeye.py"],
    *[f"tests/{name}.py" for name in ("launch/test_scheduler", "docs/test_python")],
]


class LongFilesFirst(LoadFileScheduling):
    """Goes through LONG, then through the other files, those with the most tests first."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        for file in LONG:
            if file in self.workqueue:
                self.workqueue.move_to_end(file, last=False)
                break
        super()._assign_work_unit(node)
