"""A job with a key trains on while it is attacked; what the same does to one without."""

from __future__ import annotations

import itertools
import re
import secrets
import subprocess
import sys
import time
from contextlib import closing

import pytest
from kvstore_ext.security.job_key import NAME, JobKey

from tests.support.cluster import AT_ONCE, Cluster, Job

from . import attacks, strangers
from .member import Member

KEY = secrets.token_hex(32)
_SECONDS = 1.0  # that attacks last
_LARGE = bytes(10_000)  # which is opened in another way than what is small, and dropped as well
_PROCESSES = (b"ps1", b"ps8", b"ps9", b"ps10", b"ps11")  # of a job of two workers and two servers


def train_until(directory: str) -> None:
    """Trains until the test says so, with a sum in each step that has to be right to the last bit;
    prints how many strangers were counted."""
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np

    store = mx.kv.create("p3")
    large, end = mx.nd.zeros((300_000,)), mx.nd.zeros((1,))
    own, numbers = np.float32(store.rank + 1), np.arange(300_000, dtype="float32")
    store.init("large", large)
    store.init("end", end)
    step = 0
    while end.asscalar() == 0:
        step += 1
        store.pushpull("large", mx.nd.array(numbers * own + step), out=large)
        store.pushpull("end", mx.nd.ones((1,)) * (Path(directory) / "end").exists(), out=end)
        expected = (numbers + np.float32(step)) + (2 * numbers + np.float32(step))
        assert np.array_equal(large.asnumpy(), expected), step
        if step == 3:
            print("trains", flush=True)
    strangers, foreign = (store.stats()[of] for of in ("strangers", "foreign"))
    print(f"right in all steps; strangers: {strangers}; foreign: {foreign}", flush=True)


@pytest.fixture
def job(cluster: Cluster) -> Job:
    """Two workers that train, on two servers, with a key."""
    job = cluster.start(
        train_until, cluster.directory, options=AT_ONCE, environment={NAME: KEY}
    )
    await_training(job)
    return job


def await_training(job: Job) -> None:
    for worker in job.workers:
        worker.await_output("trains")


def ports_of(job: Job) -> list[int]:
    ports = strangers.ports_of(process.pid for process in job.processes)
    assert len(ports) == len(job.processes)
    return ports


def connections(request: pytest.FixtureRequest) -> int:
    """How many are left half open."""
    return 10_000 if request.config.getoption("--all") else 300


def test_a_job_with_a_key_trains_on(
    job: Job, cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    """Through all that others can do who know the ports, and not the key."""
    ports = ports_of(job)
    with closing(attacks.HalfOpen(ports, connections(request))) as half_open:
        assert half_open.open == connections(request)
        with closing(attacks.Flood(ports)) as flood:
            answers = {
                attacks.forge(port, what, name)
                for port in ports
                for what in attacks.FORGED
                for name in attacks.NAMES
            }
            assert answers == {b""}
            secret = JobKey(bytes.fromhex(KEY)).socket_secret
            for port in ports:
                replay_and_change(port, secret)
            time.sleep(_SECONDS)
    assert flood.sent > 1_000_000
    (cluster.directory / "end").touch()
    job.wait()
    for worker in job.workers:
        assert "right in all steps" in worker.output


def admitted(port: int, secret: bytes) -> Member:
    """A member whom the port takes for one."""
    member = Member(port, secret)
    assert member.admitted
    return member


def replay_and_change(port: int, secret: bytes) -> None:
    """Does what somebody can who stands between two processes of a job: say again, or otherwise,
    what one of them has said."""
    for text in (attacks.HARMLESS, _LARGE):
        member = admitted(port, secret)
        said = member.sealed(text)
        assert member.is_connected(said), "what a member says is taken"
        assert member.is_ended_by(said), "the same again is not"
        member = admitted(port, secret)
        changed = bytearray(member.sealed(text))
        changed[-1] ^= 1
        assert member.is_ended_by(bytes(changed)), "nor is what has another bit"
        member = admitted(port, secret)
        assert member.is_connected(member.sealed(text))
        member.sealed(text)
        assert member.is_ended_by(member.sealed(text)), "nor is one taken away"
        for repeated in (said, admitted(port, secret).sealed(text)):
            assert admitted(port, secret).is_ended_by(repeated), "nor what another connection had"
    other = admitted(port, secret)
    assert not Member.repeats(port, other.handshake)
    assert not Member(port, secret, more=bytes(5000)).admitted, "nor is a last word of any length"


@pytest.mark.all_only
def test_a_job_without_a_key_trains_on_in_a_flood(cluster: Cluster) -> None:
    """Of garbage, some of which ZeroMQ takes for messages of an old version."""
    job = cluster.start(train_until, cluster.directory, servers=1, options=AT_ONCE)
    await_training(job)
    with closing(attacks.Flood(ports_of(job))) as flood:
        time.sleep(5 * _SECONDS)
    assert flood.sent > 1_000_000
    (cluster.directory / "end").touch()
    job.wait()
    for worker in job.workers:
        assert "right in all steps" in worker.output


def test_a_job_without_a_key_trains_on(
    cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    """Through what ps-lite does not get to read: so many connections, whatever is said in the name
    of a process that is connected, and what no process of the job would say in its own."""
    job = cluster.start(train_until, cluster.directory, options=AT_ONCE)
    await_training(job)
    # ZeroMQ drops what comes in a name that it still has: these come once.
    ours = itertools.count(101, 2)
    for process in job.processes:
        (port,) = strangers.ports_of([process.pid])
        for what in attacks.FORGED:
            number = next(ours)
            for name in (*_PROCESSES, b"ps%d" % number, b"stranger %d" % number):
                assert b"READY" in attacks.forge(port, what, name)
        assert attacks.ends(port, "wrapping", b"stranger")
        assert not attacks.takes_an_old_protocol(port)
    ports = ports_of(job)
    (scheduler,) = job.scheduler
    (port,) = strangers.ports_of([scheduler.pid])
    for own in (port, port + 1):  # the scheduler's address, and one of a process too many
        assert b"READY" in attacks.say(
            port, attacks.asking_for_a_number("127.0.0.1", own), b"stranger"
        )
    with closing(attacks.HalfOpen(ports, connections(request))) as half_open:
        assert half_open.open == connections(request)
        time.sleep(_SECONDS)  # in which workers give signs of life
        assert not scheduler.ended, scheduler.output
    (cluster.directory / "end").touch()
    job.wait()
    for worker in job.workers:
        said = re.search(r"right in all steps; strangers: 0; foreign: (\d+)", worker.output)
        assert said, worker.output
        assert int(said[1]) >= 2 * (len(attacks.FORGED) - 1)  # all but the one that has no end
        told = worker.output.count("message that no process of this job sends")
        assert 1 <= told <= 3, "it is told once a minute"


def test_a_scheduler_hears_no_number_before_it_has_given_any(cluster: Cluster) -> None:
    """It would be ended by ps-lite, which has no way back to such a process."""
    one_each = {"DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "1"}
    job = cluster.start(train_until, workers=0, servers=0, environment=one_each)
    (scheduler,) = job.scheduler
    while not (ports := strangers.ports_of([scheduler.pid])):
        assert not scheduler.ended, scheduler.output
        time.sleep(0.1)
    # As worker 0, which is not connected yet.
    assert b"READY" in attacks.forge(ports[0], "for_nobody", b"ps9")
    scheduler.await_output("called itself 'ps9': nobody has a number yet")
    assert b"READY" in attacks.forge(ports[0], "for_nobody", b"stranger")
    time.sleep(_SECONDS)  # in which it would have read it
    assert not scheduler.ended, scheduler.output


_CONNECT = """
import ctypes, sys
import kvstore_ext
from kvstore_ext.security.encryption import encrypt_process
from kvstore_ext.security.job_key import JobKey
from mxnet.base import _LIB

for name in ("zmq_ctx_new", "zmq_socket"):
    getattr(_LIB, name).restype = ctypes.c_void_p
key = JobKey(bytes(32))
encrypt_process(key, "worker")
socket = ctypes.c_void_p(_LIB.zmq_socket(ctypes.c_void_p(_LIB.zmq_ctx_new()), 5))
public = ctypes.create_string_buffer(32)
_LIB.crypto_scalarmult_base(public, key.socket_secret)
for option, value in ((50, public.raw), (48, public.raw), (49, key.socket_secret)):
    assert _LIB.zmq_setsockopt(socket, option, value, ctypes.c_size_t(32)) == 0
assert _LIB.zmq_connect(socket, b"tcp://" + sys.argv[1].encode()) == 0
sys.stdin.read()
print("alive", flush=True)
"""


def test_who_listens_in_a_servers_place_writes_into_nobodys_memory() -> None:
    """He has no key, and says more than a server does whose key is not known yet."""
    with attacks.ServerWithoutKey() as server, subprocess.Popen(
        [sys.executable, "-c", _CONNECT, server.at],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as client:  # fmt: skip
        latest = time.monotonic() + 60
        while server.ended < 1 and client.poll() is None and time.monotonic() < latest:
            time.sleep(0.05)
        time.sleep(1.0)  # ten of ZeroMQ's intervals
        said, _ = client.communicate()
    assert server.ended == 1  # ZeroMQ does not come again to who has broken its protocol
    assert said == "alive\n"
