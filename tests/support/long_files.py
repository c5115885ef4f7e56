"""The order in which pytest-xdist hands out files of tests: long ones first, or one process would
be left with the last of them."""
from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

# Of 25 s and more, the longest first, as `make test PYTEST_FLAGS=--durations=0` tells.
_NAMES = """
predict/simulation launch/restarts docs/commands training/slim_dp install/places
launch/secure launch/hosts_needed models/image_models failures/chaos training/equality
examples/train_image benchmarks/figures training/overlap training/memory launch/told_to_end
soak/soak training/drop_in security/secure_job launch/entries launch/watching
examples/train_sockeye check/hosts launch/local launch/ssh failures/training
models/every_model benchmarks/training parts/codecs training/slim_dp_stores
benchmarks/replay training/new_method launch/lost launch/unmodified training/api
"""
LONG = ["tests/{}/test_{}.py".format(*name.split("/")) for name in _NAMES.split()]


class LongFilesFirst(LoadFileScheduling):
    """Goes through LONG, then through the other files, those with the most tests first."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        for file in LONG:
            if file in self.workqueue:
                self.workqueue.move_to_end(file, last=False)
                break
        super()._assign_work_unit(node)
