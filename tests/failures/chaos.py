"""A training on hosts of which processes are killed, stopped and cut off, again and again.

    python -m tests.failures.chaos

is the long form, `make chaos`: 1,000 steps on three hosts, on each of which are a worker and a
server. When the job has trained for 20 s something happens to a random process, and so on to the
end, 12 times at least. The launcher starts the job again, which goes on from its last snapshot; in
the end every worker must have the bits of a job that nobody has disturbed. That twice, with other
seeds. It takes some 20 minutes, and root, for the network namespaces that are its hosts.
"""
from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Mapping

from benchmarks.cluster import Cluster, ClusterError
from tests.launch.jobs import Job
from tests.launch.sshd import Sshd
from tests.support.fork_desk import ForkDesk
from tests.support.paths import SCRIPTS, python_path
from tests.support.results import assert_same_bits, load

TRAIN = SCRIPTS / "chaos.py"
KINDS = ("killed", "stopped", "cut off")
OPTIONS: dict[str, Any] = {"deterministic": True, "silence": 5, "timeout": 60}  # of the stores
LEAST = 12  # events of the long form


@dataclass(frozen=True)
class Settings:
    """One training, on as many hosts as workers, and what happens to it.

    Parameters
    ----------
    steps, pause
        Of the training; seconds between two steps.
    every
        Seconds of training from one event to the next.
    events
        At most so many.
    away
        Seconds that a host stays cut off: longer than the stores' silence.
    """

    workers: int
    servers: int
    steps: int
    pause: float
    every: float
    events: int
    away: float


LONG = Settings(3, 3, 1000, pause=0.26, every=20.0, events=1000, away=15.0)


class Chaos:
    """What happens to a job while it trains: to whom and what, but not when, follows from a seed.

    Parameters
    ----------
    name
        Of the training.
    desk
        Who starts its processes.
    """

    def __init__(
        self,
        job: Job,
        cluster: Cluster,
        settings: Settings,
        seed: int,
        name: str,
        desk: ForkDesk,
    ) -> None:
        self.events: list[str] = []  # those that have happened, in words
        self._job, self._cluster, self._settings, self._desk = job, cluster, settings, desk
        self._steps = job.directory / f"steps of {name}"
        self._random = random.Random(seed)
        self._kinds: list[str] = []
        self._next: tuple[str, str] | None = None  # a kind and a name, until it has happened
        self._names = [f"worker {rank}" for rank in range(settings.workers)]
        self._names += [f"server {rank}" for rank in range(settings.servers)]
        self._names.append("scheduler 0")
        self._away: list[threading.Timer] = []

    def go_on(self) -> None:
        """Returns when the job has ended."""
        after = (-1, 0)  # an attempt and a step: training goes on once it is beyond
        try:
            while len(self.events) < self._settings.events:
                if not self._await_training(after) or not self._sleep(self._settings.every):
                    break
                after = self._strike()
            self._job.wait(limit=3600)
        finally:
            for timer in self._away:
                timer.cancel()

    def _await_training(self, after: tuple[int, int]) -> bool:
        """Whether the job makes steps again; False once it has ended."""
        while self._progress() <= after:
            if not self._sleep(0.1):
                return False
        return True

    def _sleep(self, seconds: float) -> bool:
        """Whether the job still runs after that."""
        latest = time.monotonic() + seconds
        while time.monotonic() < latest and self._job.runs():
            time.sleep(0.05)
        return self._job.runs()

    def _progress(self) -> tuple[int, int]:
        """The attempt, and the last step that it has made."""
        with contextlib.suppress(OSError, ValueError):
            attempt, step, _ = self._steps.read_text().split()
            return int(attempt), int(step)
        return (-1, 0)

    def _strike(self) -> tuple[int, int]:
        """Has something happen; returns beyond which attempt and step training goes on."""
        attempt, step = self._progress()
        if self._next is None:
            self._kinds = self._kinds or self._random.sample(KINDS, len(KINDS))
            self._next = self._kinds.pop(), self._random.choice(self._names)
        kind, name = self._next
        process, environment = self._find(name, attempt)
        if process is None:  # the job is being started again, whatever the reason
            return attempt, self._settings.steps
        self._next = None
        self.events.append(f"after step {step} of attempt {attempt}: {name} is {kind}")
        if kind == "cut off":
            self._cut_off(environment["DMLC_NODE_HOST"])
        else:
            with contextlib.suppress(ProcessLookupError):  # as above
                os.kill(process, signal.SIGKILL if kind == "killed" else signal.SIGSTOP)
            if name == "scheduler 0" and kind == "stopped":  # which the job can do without
                return attempt, step
        return attempt, self._settings.steps

    def _find(self, name: str, attempt: int) -> tuple[int | None, Mapping[str, str]]:
        """A process of an attempt, with its variables."""
        role, rank = name.split()
        wanted = {
            "DMLC_ROLE": role,
            "KVSTORE_EXT_LAUNCH_RANK": rank,
            "KVSTORE_EXT_ATTEMPT": str(attempt),
        }
        for process, environment in self._desk.environments.items():
            if wanted.items() <= environment.items():
                return process, environment
        return None, {}

    def _cut_off(self, address: str) -> None:
        host, = (host for host in self._cluster.hosts if host.address == address)
        self._cluster.cut_off(host)
        self._away.append(threading.Timer(self._settings.away, self._cluster.bring_back, [host]))
        self._away[-1].start()


def run(settings: Settings, seed: int, directory: Path, name: str) -> tuple[Job, Chaos]:
    """A disturbed training, from its start to its end; workers leave what they have trained under
    its name. Raises ClusterError where there can be no namespaces."""
    job = Job(directory)
    try:
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(Cluster(settings.workers))
            sshd = Sshd(directory, job.mark, ["0.0.0.0"])
            stack.enter_context(sshd.serve_on(cluster.hosts))
            desk = stack.enter_context(ForkDesk(directory / "desk", cluster.hosts).serve())
            chaos = Chaos(job, cluster, settings, seed, name, desk)
            _launch(job, cluster, sshd, settings, name, desk)
            chaos.go_on()
    finally:
        job.end()
    return job, chaos


def _launch(
    job: Job,
    cluster: Cluster,
    sshd: Sshd,
    settings: Settings,
    name: str,
    desk: ForkDesk,
) -> None:
    """Starts the launcher on the switch."""
    job.entry = [*cluster.switch.within, *job.entry]
    addresses = [host.address for host in cluster.hosts]
    arguments = ["-H", sshd.hostfile(addresses), f"--launcher-options=-F {sshd.config}"]
    arguments += ["-n", str(settings.workers), "-s", str(settings.servers), "--restarts", "1000"]
    arguments.append("--no-secure")
    arguments += ["--server-command", shlex.join([*desk.command, "-m", "kvstore_ext.server"])]
    trained = [str(job.directory), name, str(settings.steps), str(settings.pause)]
    job.start(
        *[*arguments, *desk.command, str(TRAIN), *trained],
        environment={
            "KVSTORE_EXT_OPTIONS": json.dumps(OPTIONS),
            "PYTHONPATH": python_path(),
            "OMP_NUM_THREADS": "1",
        },
    )


def begins(directory: Path, name: str) -> list[int]:
    """The step at which each attempt of a training began."""
    return [int(line) for line in (directory / f"begins of {name}").read_text().split()]


def main() -> int:
    """Returns 0 where both trainings come to the bits of the one that nobody disturbs."""
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-chaos-") as folder:
        for seed in range(3):
            directory = Path(folder) / str(seed)
            directory.mkdir()
            settings = LONG if seed else replace(LONG, pause=0, events=0)
            begun = time.monotonic()
            try:
                job, chaos = run(settings, seed, directory, "trained")
            except ClusterError as error:
                print(f"chaos: {error}", file=sys.stderr)
                return 2
            print(*job.errors, *chaos.events, sep="\n")
            assert job.wait() == 0
            assert len(chaos.events) >= LEAST or not seed
            assert begins(directory, "trained")[-1] > 0 or not seed
            for rank in range(settings.workers):
                undisturbed = load(f"{folder}/0", "trained", rank)
                assert_same_bits(load(directory, "trained", rank), undisturbed, f"of worker {rank}")
            seconds = time.monotonic() - begun
            print(f"{len(chaos.events)} events, {seconds:.0f} s: the same bits", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
