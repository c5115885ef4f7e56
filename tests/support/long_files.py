"""The order in which pytest-xdist hands out files of tests: long ones first, or one process would
be left with the last of them."""
from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

# Of some 15 s and more, the longest first, as `make test PYTEST_FLAGS=--durations=0` tells; and
# the last ones, which have so few tests that they would begin when all others have ended.
_NAMES = """
predict/simulation examples/train_image install/places docs/commands training/slim_dp
security/secure_job failures/chaos benchmarks/figures launch/hosts_needed check/hosts
training/snapshots launch/secure training/overlap training/equality launch/unmodified
launch/restarts models/image_models examples/train_sockeye soak/soak
training/slim_dp_stores training/memory launch/local launch/told_to_end launch/ssh
security/attacks training/drop_in failures/training benchmarks/training parts/codecs
launch/runner failures/matrix benchmarks/beyond benchmarks/replay training/ec_dnn
training/shared_memory benchmarks/prediction check/host launch/entries launch/reports
launch/watching launch/lost training/new_method examples/train_ec_dnn failures/told_to_end
predict/command training/api launch/terminal parts/store
trace/job failures/damage parts/exit_status models/every_model
"""
LONG = ["tests/{}/test_{}.py".format(*name.split("/")) for name in _NAMES.split()]
# Files that run with another one: both need the wheel, which is made once a process.
BESIDE = {"tests/install/test_archives.py": "tests/install/test_places.py"}


class LongFilesFirst(LoadFileScheduling):
    """Goes through LONG, then through the other files, those with the most tests first. A process
    that gets a file gets those of BESIDE with it."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        for file in LONG:
            if file in self.workqueue:
                self.workqueue.move_to_end(file, last=False)
                break
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return BESIDE.get(file, file)
