"""A connection that something on its way resets comes back, but not what was under way on it."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

from tests.support.cluster import Cluster, Job, await_failure

SILENCE = 4  # seconds: the stores' option
OPTIONS = {"silence": SILENCE, "patience": 0}

PIDFD_OPEN, PIDFD_GETFD = 434, 438  # numbers of Linux's calls, the same on all machines


def reset_connections(pid: int) -> int:
    """Resets a process's TCP connections, as a firewall may; what it has not read of them is lost.
    Returns how many."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = libc.syscall(PIDFD_OPEN, pid, 0)
    assert process >= 0, os.strerror(ctypes.get_errno())
    connected = _connected()
    resets = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(entry) not in connected:
                continue
        except FileNotFoundError:  # it has just been closed
            continue
        descriptor = libc.syscall(PIDFD_GETFD, process, int(entry.name), 0)
        assert descriptor >= 0, os.strerror(ctypes.get_errno())
        resets += libc.connect(descriptor, bytes(16), 16) == 0  # to no family of addresses
        os.close(descriptor)
    os.close(process)
    return resets


def _connected() -> set[str]:
    """TCP connections, as links to descriptors name them."""
    established = "01"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return {f"socket:[{each[9]}]" for each in fields if each[3] == established}


def train(directory: str) -> None:
    """Trains until there is a file, and makes a pause of all workers where there is another."""
    import os
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    weight, files = mx.nd.zeros((300000,)), mx.nd.zeros((2,))
    store.broadcast(["weight", "files"], [weight, files], out=[weight, files])
    paused, step = False, 0
    while True:
        store.pushpull("weight", mx.nd.ones((300000,)), out=weight)
        found = [os.path.exists(f"{directory}/{name}") for name in ("pause", "stop")]
        store.pushpull("files", mx.nd.array(found), out=files)
        assert (weight == store.num_workers).asnumpy().all()
        step += 1
        pause, stop = files.asnumpy()
        if stop:
            break
        if pause and not paused:
            paused = True
            print("pausing")
            while not os.path.exists(f"{directory}/go on"):
                time.sleep(0.1)
            print("going on")


def start(cluster: Cluster, directory: Path) -> Job:
    """A job that pauses."""
    (directory / "pause").touch()
    job = cluster.start(train, directory, options=OPTIONS)
    for worker in job.workers:
        worker.await_output("pausing")
    return job


def test_messages_that_are_lost_end_the_job_and_are_named(cluster: Cluster, tmp_path: Path) -> None:
    job = start(cluster, tmp_path)
    server = job.servers[1]
    server.send(signal.SIGSTOP)
    (tmp_path / "go on").touch()
    for worker in job.workers:
        worker.await_output("going on")
    time.sleep(1)  # in which they push
    assert reset_connections(server.pid) > 0
    server.send(signal.SIGCONT)
    await_failure(*job.processes, seconds=60)
    for worker in job.workers:
        worker.await_output(
            rf"server [01]: \d+ messages? of workers? [01].* did not arrive within {SILENCE} s, "
            "although later signs of life did: a connection was reset on its way"
        )


def test_a_job_goes_on_where_a_reset_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    job = start(cluster, tmp_path)
    assert reset_connections(job.servers[0].pid) > 0
    time.sleep(2 * SILENCE)
    (tmp_path / "go on").touch()
    for worker in job.workers:
        worker.await_output("going on")
    (tmp_path / "stop").touch()
    job.wait()
