"""A job with a key trains as one without, and strangers neither read it nor disturb it."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
import uuid
from contextlib import ExitStack
from functools import lru_cache
from typing import Any, Callable, NamedTuple

import pytest
from kvstore_ext.errors import ClusterError
from kvstore_ext.protocol.commands import GREET, command
from kvstore_ext.security.admission import await_admission
from kvstore_ext.security.curve_hello import GREETING, SIGNATURE_BYTES
from kvstore_ext.security.job_key import NAME, JobKey

from tests.support.cluster import AT_ONCE, Cluster, Job, await_failure, limits
from tests.support.results import assert_same_bits, load_all
from tests.support.system_packages import needs_root

from . import strangers
from .attacks import SecondScheduler
from .capture import Capture

KEY, OTHER_KEY = secrets.token_hex(32), secrets.token_hex(32)
PATTERN = bytes(secrets.choice(b"abcdefgh") for _ in range(3)) + b"A"  # of a float32
TOLD = bytes(secrets.choice(b"abcdefgh") for _ in range(3)) + b"B"
# What travels in a job without a key: parameters, gradients, a command to a server, and the name in
# it.
# Its own, since other tests' jobs greet on the same network meanwhile.
JOB = f"watched-{uuid.uuid4().hex}"
NUMBERS, GRADIENTS = 16 * PATTERN, 16 * TOLD
GREETED = f"{socket.gethostname()} {JOB}".encode()
HOST = command(GREET, 0, socket.gethostname(), JOB).encode()
IS_ROOT = os.geteuid() == 0
HEARTBEATS = {"PS_HEARTBEAT_INTERVAL": "1"}


def train_beside_strangers(directory: str, pattern: str, told: str, prefix: str) -> None:
    """Trains dense and sparse keys; waits half-way until the test says to go on. A child of it
    comes and goes meanwhile."""
    import os
    import time
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np

    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
    number, gradient_told = np.frombuffer(bytes.fromhex(pattern + told), np.float32)
    sizes = (1, 1000, 5000, 400_000)
    weights = [mx.nd.full((size,), number) for size in sizes]
    rows = mx.nd.zeros((6, 4)).tostype("row_sparse")
    for key, weight in enumerate(weights):
        store.init(key, weight)
    store.init("told", mx.nd.zeros((1000,)))
    store.init("rows", mx.nd.full((6, 4), number).tostype("row_sparse"))
    for step in range(6):
        if step == 3:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            print("half-way", flush=True)
            while not (Path(directory) / f"{prefix}-go-on").exists():
                time.sleep(0.05)
        for key, weight in enumerate(weights):
            gradient = mx.nd.arange(weight.size) * (step + 1) + store.rank
            store.pushpull(key, gradient, out=weight)
        store.push("told", mx.nd.full((1000,), gradient_told))
        dense = mx.nd.ones((6, 4)) * (step + store.rank)
        store.push("rows", dense.tostype("row_sparse"))
        store.row_sparse_pull("rows", out=rows, row_ids=mx.nd.arange(6))
    found = {str(key): weight.asnumpy() for key, weight in enumerate(weights)}
    np.savez(Path(directory) / f"{prefix}-{store.rank}.npz", rows=rows.asnumpy(), **found)
    print("strangers:", store.stats()["strangers"])
    print("silent schedulers:", store.get_num_dead_node(1, timeout=3))


class Trained(NamedTuple):
    """A job that has ended: what it made, and what others saw and got."""

    job: Job
    parameters: list  # one a worker
    capture: Any  # None without root
    answers: list
    cut: int  # connections, half-way
    ports: list[int]  # of its processes


Run = Callable[[str], Trained]


@pytest.fixture(scope="module")
def run(module_cluster: Cluster) -> Run:
    """Runs a job with a key, the empty one for none, while strangers knock at its ports if it has
    one."""

    def run(key: str) -> Trained:
        directory, prefix = module_cluster.directory, f"job{len(module_cluster.jobs)}"
        with ExitStack() as until_here:
            capture = Capture(NUMBERS, GRADIENTS, GREETED, HOST) if IS_ROOT else None
            if capture:
                until_here.callback(capture.close)
            job = module_cluster.start(
                train_beside_strangers,
                *(directory, PATTERN.hex(), TOLD.hex(), prefix),
                options={**AT_ONCE, "shared_memory": False},  # so that there is something to read
                environment={**HEARTBEATS, "KVSTORE_EXT_JOB": JOB, **({NAME: key} if key else {})},
            )
            for worker in job.workers:
                worker.await_output("half-way")
            ports = strangers.ports_of(process.pid for process in job.processes)
            answers = knock(job) if key else []
            cut = sum(strangers.cut_connections(process.pid) for process in job.processes)
            time.sleep(3.5)  # of heartbeats, on the next connections
            (directory / f"{prefix}-go-on").touch()
            job.wait()
        return Trained(job, load_all(directory, prefix, 2), capture, answers, cut, ports)

    return lru_cache(maxsize=None)(run)


def knock(job: Job) -> list:
    """Has strangers of every kind at every port of the job, thrice; returns what they were told."""
    ports = strangers.ports_of(process.pid for process in job.processes)
    assert len(ports) == len(job.processes)
    # What ends a job without a key: ps-lite does not expect these two frames.
    letters = strangers.frames(64 * b"A", 64 * b"B")
    answers = []
    for port in 3 * ports:
        answers.append(strangers.say(port, b"NULL", strangers.ready(b"ps9") + letters))
        plain = b"\x05HELLO" + b"\x04user" + b"\x06secret"
        answers.append(strangers.say(port, b"PLAIN", bytes([4, len(plain)]) + plain))
        answers.append(strangers.say(port, b"CURVE", strangers.hello(bytes.fromhex(OTHER_KEY))))
        garbage = b"\x00\xc8" + secrets.token_bytes(5000)  # a frame, and then anything
        answers.append(strangers.say(port, b"CURVE", garbage))
        # Added to an address, this size would wrap (CVE-2019-6250).
        large = b"\x02" + (2**64 - 4096).to_bytes(8, "big") + bytes(9000)
        answers.append(strangers.say(port, b"CURVE", large))
        answers.append(strangers.say(port, b"CURVE", letters))
    return answers


def test_strangers_are_told_nothing(run: Run) -> None:
    assert set(run(KEY).answers) == {b""}
    assert len(run(KEY).answers) == 90


def test_the_job_goes_on_and_has_the_bits_of_one_without_a_key(run: Run) -> None:
    secure, open_to_all = run(KEY), run("")
    for found in secure.parameters:
        assert_same_bits(found, open_to_all.parameters[0], "of the job")


def test_connections_that_broke_are_made_again(run: Run) -> None:
    """And encrypted again: all that comes later has come by them."""
    for key in (KEY, ""):
        # Between two workers, two servers and the scheduler, from both ends each.
        assert run(key).cut >= 8
        for worker in run(key).job.workers:
            assert "silent schedulers: 0" in worker.output, "its heartbeats come"


@needs_root
def test_who_reads_the_network_sees_no_number_command_or_host(run: Run) -> None:
    secure, open_to_all = run(KEY).capture, run("").capture
    assert open_to_all.found[NUMBERS] > 100
    assert open_to_all.found[GRADIENTS] >= 12  # of two workers, in six steps
    assert open_to_all.found[GREETED] >= 4  # by two workers, to two servers
    assert open_to_all.found[HOST] >= 2
    captured = sum(secure.bytes_to[port] for port in run(KEY).ports)
    assert captured > 0.9 * open_to_all.found_bytes[NUMBERS], "of the job itself"
    assert secure.found == dict.fromkeys((NUMBERS, GRADIENTS, GREETED, HOST), 0)


def test_strangers_are_counted_and_named_once(run: Run) -> None:
    job = run(KEY).job
    refused = r"refused \d+ connections? from or to a process that does not know the job's key"
    for process in job.processes:
        assert 1 <= len(re.findall(refused, process.output)) <= 2, "it is told once a minute"
        assert "CURVE I" not in process.output
    for worker in job.workers:
        counted = re.search(r"strangers: (\d+)", worker.output)
        assert counted is not None
        assert int(counted[1]) >= 15


def test_every_process_says_the_keys_fingerprint_and_never_the_key(run: Run) -> None:
    fingerprint = JobKey(bytes.fromhex(KEY)).fingerprint
    for process in run(KEY).job.processes:
        role = process.name.split()[0]
        assert f"this {role} encrypts with the job's key {fingerprint}" in process.output
        assert KEY not in process.output
    assert "encrypts" not in run("").job.report()


def wait_for_a_worker(variable: str, value: str, first: str) -> None:
    """Opens a store; the worker that comes first has a variable set like this, or not at all."""
    import os
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    try:
        Path(first).mkdir()
        os.environ.pop(variable)
        if value:
            os.environ[variable] = value
    except FileExistsError:
        pass
    mx.kv.create("p3")


_SERVE_WITH = f"""
import os, runpy
if os.environ["DMLC_ROLE"] == "server":
    os.environ["{NAME}"] = "{OTHER_KEY}"
runpy.run_module("kvstore_ext.server", run_name="__main__")
"""
# Of a worker, beside that of all others; or of a server.
WRONG_KEYS = {"another": OTHER_KEY, "none": "", "malformed": KEY[1:]}
OF_A_SERVER = "of a server"


@pytest.fixture(scope="module")
def refused(module_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    """Jobs of which a process has a wrong key. They wait for it side by side."""
    how: dict[str, Any] = {"options": limits(8), "environment": {NAME: KEY}}
    jobs = {}
    for name, key in WRONG_KEYS.items():
        first = tmp_path_factory.mktemp("worker") / "somebody was here"
        jobs[name] = module_cluster.start(wait_for_a_worker, NAME, key, first, **how)
    jobs[OF_A_SERVER] = module_cluster.start(
        wait_for_a_worker,
        *("PATH", os.environ["PATH"], "/"),
        workers=1,
        servers=1,
        server=("-c", _SERVE_WITH),
        fork=False,
        **how,
    )
    return jobs


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            "another",
            rf"not admitted by the scheduler at 127\.0\.0\.1:\d+: is {NAME} the same everywhere\? "
            f"Here its fingerprint is {JobKey(bytes.fromhex(OTHER_KEY)).fingerprint}",
        ),
        (
            "none",
            r"the scheduler at 127\.0\.0\.1:\d+ admits those alone who have the job's key, and "
            f"{NAME} is not set here",
        ),
        ("malformed", f"{NAME} has 63 characters"),
    ],
    ids=WRONG_KEYS,
)
def test_a_worker_without_the_key_hears_why(
    refused: dict[str, Job], wrong: str, message: str
) -> None:
    job = refused[wrong]
    await_failure(*job.processes, seconds=60)  # with what starting takes on a busy machine
    assert any(re.search(message, worker.output) for worker in job.workers)
    assert not any(secret[1:63] in job.report() for secret in (KEY, OTHER_KEY))


def test_a_server_with_another_key_hears_why(refused: dict[str, Job]) -> None:
    job = refused[OF_A_SERVER]
    await_failure(*job.processes, seconds=60)
    fingerprint = JobKey(bytes.fromhex(OTHER_KEY)).fingerprint
    assert re.search(
        rf"not admitted by the scheduler at 127\.0\.0\.1:\d+: is {NAME} the same everywhere\? "
        f"Here its fingerprint is {fingerprint}",
        job.servers[0].output,
    )
    assert not any(secret in job.report() for secret in (KEY, OTHER_KEY))


def test_a_malformed_key_ends_every_process(cluster: Cluster) -> None:
    how = {"workers": 1, "servers": 1, "environment": {NAME: "open sesame"}}
    job = cluster.start(wait_for_a_worker, "PATH", "", "/", **how)
    await_failure(*job.processes)
    for process in job.processes:
        assert f"{NAME} has 11 characters" in process.output
        assert "sesame" not in process.output


def test_a_second_scheduler_without_the_key_is_not_taken() -> None:
    """Somebody who has come to the scheduler's port before it: workers and servers name it."""
    key = JobKey(bytes.fromhex(KEY))
    for mechanism in (b"NULL", b"CURVE"):
        second = SecondScheduler(mechanism)
        refused = f"not admitted by the scheduler at {second.at}: is {NAME} the same everywhere"
        with second, pytest.raises(ClusterError, match=refused) as error:
            await_admission(second.at, key, 0.5)
        assert ("--no-secure" in str(error.value)) == (mechanism == b"NULL")
        assert second.heard.startswith(GREETING[:SIGNATURE_BYTES])
        assert not any(secret in second.heard for secret in (key.secret, key.socket_secret))


def test_a_scheduler_that_never_comes_is_named() -> None:
    with pytest.raises(ClusterError, match=r"cannot be reached within 0\.5 s"):
        await_admission("127.0.0.1:9", JobKey(bytes(32)), 0.5)
