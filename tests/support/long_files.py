"""The order in which pytest-xdist hands out files of tests: long ones first, or one process would
be left with the last of them."""
from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

LONG = [
    *[f"tests/training/test_{name}.py" for name in (
        "drop_in", "overlap", "equality", "memory", "slim_dp", "compressed", "new_method")],
    "tests/failures/test_chaos.py",
    *["tests/models/test_every_model.py", "tests/models/test_image_models.py"],
    *["tests/examples/test_train_image.py", "tests/examples/test_train_sockeye.py"],
    *["tests/install/test_places.py", "tests/launch/test_restarts.py"],
    *["tests/launch/test_told_to_end.py", "tests/training/test_snapshots.py"],
    *["tests/soak/test_soak.py", "tests/security/test_attacks.py"],
    *["tests/failures/test_silence.py", "tests/failures/test_damage.py"],
]


class LongFilesFirst(LoadFileScheduling):
    """Goes through LONG, then through the other files, those with the most tests first."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        for file in LONG:
            if file in self.workqueue:
                self.workqueue.move_to_end(file, last=False)
                break
        super()._assign_work_unit(node)
