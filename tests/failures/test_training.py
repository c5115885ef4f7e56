"""One process of a training job fails: the others say which and why, and end by themselves."""

from __future__ import annotations

import re
import signal
import socket

import pytest

from tests.support.cluster import AT_ONCE, Cluster, Job, Process, await_failure

DEAD = {"silence": 10, "patience": 0}  # seconds: who has a limit is named by it, or never
STUCK = {"silence": 10, "patience": 10}
HOST = socket.gethostname()
UNEVEN = ": do all workers have the same number of batches? With store.joined() they need not"


def train(mishap: str = "") -> None:
    """Trains two keys for ever; worker 1 meets its mishap in the fourth step, between them."""
    import os
    import signal
    import threading

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    first, last = mx.nd.zeros((300,)), mx.nd.zeros((200,))
    store.broadcast(["first", "last"], [first, last], out=[first, last])
    for step in range(1_000_000):
        store.pushpull("first", mx.nd.ones((300,)), out=first)
        gradient = mx.nd.ones((200,))
        if store.rank == 1 and step == 3:
            first.wait_to_read()
            if mishap == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif mishap == "hangs":
                threading.Event().wait()
            elif mishap == "leaves":
                break
            elif mishap.startswith("gives up"):
                if mishap == "gives up beside a thread":
                    threading.Thread(target=threading.Event().wait).start()
                    globals()["kept"] = store  # as a script has it
                raise SystemExit("no more batches")
            elif mishap.startswith("raises"):
                if mishap == "raises beside a thread":
                    threading.Thread(target=threading.Event().wait).start()
                raise LookupError("no more batches")
            elif mishap == "interrupted":
                # Which a shell's background jobs ignore, this one included if the tests are one.
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.raise_signal(signal.SIGINT)
            elif "cannot compute" in mishap:  # the engine says so, later
                gradient = mx.nd.random.normal(0, -1, shape=(200,))
        store.pushpull("last", gradient, out=last)
        try:
            last.wait_to_read()
        except mx.MXNetError:
            if mishap != "cannot compute, and goes on":
                raise
        if step < 3:
            print("step", step, "of worker", store.rank)


def train_unevenly() -> None:
    """Worker 1 has a batch less than worker 0."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    network = mx.gluon.nn.Dense(1, in_units=2, prefix="net_")
    network.initialize()
    trainer = mx.gluon.Trainer(network.collect_params(), "sgd", kvstore=store)
    for _ in range(3 - store.rank):
        with mx.autograd.record():
            loss = network(mx.nd.ones((1, 2)))
        loss.backward()
        trainer.step(1)
    mx.nd.waitall()


def of_rank(job: Job, rank: int) -> Process:
    """The worker that has this rank, once it has trained for three steps."""
    for process in job.workers:
        process.await_output("step 2 ")
    return next(process for process in job.workers if f"of worker {rank}" in process.output)


def train_sparse(mishap: str) -> None:
    """Trains a sparse key for ever; worker 1 is killed in the fourth step, or hangs."""
    import os
    import signal
    import threading

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    rows = mx.nd.arange(4, dtype="int64")
    value = mx.nd.zeros((4, 2)).tostype("row_sparse")
    store.init("rows", value)
    for step in range(1_000_000):
        store.push("rows", mx.nd.ones((4, 2)).tostype("row_sparse"))
        store.row_sparse_pull("rows", out=value, row_ids=rows)
        value.wait_to_read()
        if step < 3:
            print("step", step, "of worker", store.rank)
        elif store.rank == 1 and mishap.startswith("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        elif store.rank == 1:
            threading.Event().wait()


def take_snapshots_of_sparse_rows(mishap: str) -> None:
    """Takes one after each step; worker 1 is killed in the fourth. What a step pushes is pulled
    with the next forward pass, or in the fork of a loader."""
    import os
    import signal

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from mxnet import autograd, gluon

    store = mx.kv.create("p3")
    sparse = {"stype": "row_sparse", "grad_stype": "row_sparse"}
    rows = gluon.Parameter("rows", shape=(4, 2), init="zeros", **sparse)
    average = gluon.Parameter("average", shape=(2,), init="zeros", grad_req="null")
    for parameter in (rows, average):
        parameter.initialize()
    trainer = gluon.Trainer([rows, average], "sgd", {"learning_rate": 1}, kvstore=store)
    for step in range(1_000_000):
        with autograd.record():
            loss = mx.nd.sparse.sum(rows.row_sparse_data(mx.nd.arange(4, dtype="int64")))
        loss.backward()
        if step == 3 and store.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        trainer.step(1)
        if mishap == "killed before a fork" and step == 3:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        store.snapshot(os.environ["SNAPSHOTS"], every=1, keep=1)
        print("step", step, "of worker", store.rank)


Lost = dict  # what happened -> the job, and its workers of rank 0 and 1


@pytest.fixture(scope="module")
def lost(module_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Lost:
    """Jobs that have lost processes, and wait for their limits side by side."""
    found = {}
    for what, script, servers, options in (
        ("killed", train, 2, DEAD),
        ("hangs", train, 1, STUCK),
        ("server killed", train, 2, DEAD),
        ("all workers killed", train, 1, DEAD),
        ("all but the scheduler killed", train, 1, DEAD),
        ("killed with sparse keys", train_sparse, 1, {"silence": 3, "patience": 0}),
        ("hangs with sparse keys", train_sparse, 1, {"silence": 3, "patience": 3}),
        ("killed before a snapshot", take_snapshots_of_sparse_rows, 1, {"silence": 3}),
        ("killed before a fork", take_snapshots_of_sparse_rows, 1, {"silence": 3}),
    ):
        directory = tmp_path_factory.mktemp("snapshots")
        job = module_cluster.start(
            script, what, servers=servers, options=options,
            environment={"SNAPSHOTS": str(directory)},
        )
        found[what] = job, of_rank(job, 0), of_rank(job, 1)
        doomed = {
            "server killed": job.servers[:1],
            "all workers killed": job.workers,
            "all but the scheduler killed": [*job.workers, *job.servers],
        }
        for process in doomed.get(what, []):
            process.send(signal.SIGKILL)
    return found


@pytest.mark.usefixtures("lost")  # while those wait
@pytest.mark.parametrize(
    ("mishap", "words"),
    [
        ("raises", "worker 1: its script failed: LookupError: no more batches"),
        ("interrupted", "worker 1: its script failed: KeyboardInterrupt"),
        ("cannot compute", "worker 1: its script failed: mxnet.base.MXNetError: "),
        (
            "cannot compute, and goes on",
            "worker 1: key 'last' cannot be sent: its gradient of the round before could not be",
        ),
        ("leaves", "worker 1 has left, but worker 0 pushed key 'last', round 4" + UNEVEN),
        ("gives up", "worker 1: its script ended with status 1"),
    ],
)
def test_a_failed_script_ends_the_job_at_once(cluster: Cluster, mishap: str, words: str) -> None:
    job = cluster.start(train, mishap, servers=1, options=AT_ONCE)
    survivor = of_rank(job, 0)
    await_failure(*job.processes)
    for process in [survivor, *job.servers, *job.scheduler]:
        assert words in process.output


@pytest.mark.parametrize(
    ("mishap", "words"),
    [
        ("raises beside a thread", "its script failed: LookupError: no more batches"),
        ("gives up beside a thread", "its script ended with status 1"),
    ],
)
def test_a_failed_script_is_told_of_while_a_thread_of_it_lives(
    cluster: Cluster, mishap: str, words: str
) -> None:
    """For which Python waits before anything else is done at the end."""
    job = cluster.start(train, mishap, servers=1, options=AT_ONCE, fork=False)
    failed = of_rank(job, 1)
    others = [process for process in job.processes if process is not failed]
    await_failure(*others)
    for process in others:
        assert f"worker 1: {words}" in process.output


def test_uneven_batches_are_suspected_and_the_parameter_is_named(cluster: Cluster) -> None:
    job = cluster.start(train_unevenly, servers=1, options=AT_ONCE)
    left = r"worker 1 has left, but worker 0 pushed key [01] \(net_(bias|weight)\), round 3"
    job.await_output(f"MXNetError: .*{left}{re.escape(UNEVEN)}")
    assert sorted(process.wait() for process in job.workers) == [1, 1]


def train_unevenly_with_sparse_keys() -> None:
    """Worker 1 has a batch less than worker 0."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.init("rows", mx.nd.zeros((4, 2)).tostype("row_sparse"))
    for _ in range(3 - store.rank):
        store.push("rows", mx.nd.ones((4, 2)).tostype("row_sparse"))


def test_uneven_batches_of_sparse_keys_are_suspected_too(cluster: Cluster) -> None:
    job = cluster.start(train_unevenly_with_sparse_keys, servers=1, options=AT_ONCE)
    words = "worker 1 has left, but another one has pushed key 'rows', round 3" + UNEVEN
    job.await_output(re.escape(words))
    await_failure(*job.processes)


def join_and(then: str) -> None:
    """Worker 0 joins at once; worker 1 trains, then meets its mishap."""
    import os
    import signal
    import threading

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    # Which a shell's background jobs ignore, this one included if the tests are one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store = mx.kv.create("p3")
    value = mx.nd.zeros((300,))
    store.broadcast("weight", value, out=value)
    if store.rank == 0:
        print("worker 0 joins")
        store.join()
    store.pushpull("weight", mx.nd.ones((300,)), out=value)
    value.wait_to_read()
    if then == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif then == "raises":
        raise LookupError("no more batches")
    elif then == "initialises":
        store.init("late", value)
        mx.nd.waitall()
    elif then == "broadcasts":
        store.broadcast_from(1, "own", value)
        mx.nd.waitall()
    elif then == "meets":
        store.barrier()
    elif then == "interrupts":
        threading.Event().wait()


@pytest.fixture(scope="module")
def killed_after_a_join(module_cluster: Cluster) -> Job:
    """Whose silence lasts while others fail at once."""
    return module_cluster.start(join_and, "killed", servers=1, options={"silence": 5})


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("raises", "worker 1: its script failed: LookupError: no more batches"),
        ("leaves", "worker 1 has left, but worker 0 has joined: all workers call"),
        ("broadcasts", "worker 0 has joined, but worker 1 broadcast key"),
        # These two are tests of the core as well.
        pytest.param(
            "initialises",
            "worker 0 has joined, but worker 1 initialised key 'late', in which all",
            marks=pytest.mark.all_only,
        ),
        pytest.param(
            "meets",
            "worker 0 has joined, but worker 1 has come to barrier 1, in which all take",
            marks=pytest.mark.all_only,
        ),
        ("killed", "worker 1 has not been heard of for 5 s"),
    ],
)
def test_a_worker_that_has_joined_hears_of_every_failure(
    cluster: Cluster, killed_after_a_join: Job, then: str, words: str
) -> None:
    job = killed_after_a_join
    if then != "killed":
        job = cluster.start(join_and, then, servers=1, options=AT_ONCE)
    job.await_output(re.escape(words))
    await_failure(*job.servers)
    for process in job.workers:
        assert process.wait() not in (0, None)
        assert "worker 0 joins" not in process.output or words in process.output


def test_a_worker_that_has_joined_can_be_interrupted(cluster: Cluster) -> None:
    job = cluster.start(join_and, "interrupts", servers=1, options=AT_ONCE)
    job.await_output("worker 0 joins")
    joined = next(process for process in job.workers if "joins" in process.output)
    joined.send(signal.SIGINT)
    await_failure(*job.servers)
    assert "worker 0: its script failed: KeyboardInterrupt" in job.servers[0].output


def wait_for_the_other() -> None:
    """Rank 0 goes to a barrier, to which rank 1 never comes."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    if store.rank == 1:
        raise LookupError("no more batches")
    store.barrier()


def miss_a_barrier() -> None:
    """Rank 1 comes to a barrier less than rank 0, and has more to do."""
    import threading

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.barrier()
    if store.rank == 1:
        threading.Event().wait(30)
    store.barrier()


def test_who_does_not_come_to_a_barrier_is_named(cluster: Cluster) -> None:
    job = cluster.start(miss_a_barrier, servers=1, options={"silence": 2, "patience": 2})
    words = "worker 1 has not come to barrier 2, which worker 0 did, within 2 s"
    for process in [*job.servers, *job.scheduler]:
        process.await_output(words)
    await_failure(*job.servers, *job.scheduler)
    job.await_output(f"ClusterError: .*{words}")


def test_a_failed_script_ends_a_barrier_at_once(cluster: Cluster) -> None:
    job = cluster.start(wait_for_the_other, servers=1, options=AT_ONCE)
    await_failure(*job.processes)
    for process in job.workers:
        assert "LookupError: no more batches" in process.output


def test_a_killed_worker_is_named_by_all_survivors(lost: Lost) -> None:
    job, survivor, victim = lost["killed"]
    await_failure(survivor, *job.servers)
    assert victim.wait() == -signal.SIGKILL
    words = (
        "worker 1 has not been heard of for 10 s, nor pushed key 'last', round 4, which worker 0 "
        f"did (worker 1 on {HOST})"
    )
    for process in [survivor, *job.servers]:
        assert words in process.output
        assert UNEVEN not in process.output
    assert "MXNetError" in survivor.output


def test_a_worker_that_hangs_is_named_by_all_others(lost: Lost) -> None:
    job, survivor, _ = lost["hangs"]
    await_failure(survivor, *job.servers)
    words = (
        "worker 1 has not pushed key 'last', round 4, which worker 0 did, within 10 s (worker 1 on "
        f"{HOST}){UNEVEN}"
    )
    assert words in survivor.output
    assert words in job.servers[0].output


def test_a_killed_server_is_named_by_all_survivors(lost: Lost) -> None:
    """A worker that has had the server's last answer, before the other was to get it, waits for
    that worker at the other server, and misses signs of life alone."""
    job, *workers = lost["server killed"]
    await_failure(*workers, job.servers[1])
    missed = r"(answer from server [01] for key '\w+', round \d+|sign of life from server [01])"
    for process in [*workers, job.servers[1]]:
        assert re.search(rf"worker [01]: no {missed}, within 10 s", process.output)
        assert re.search(rf"within 10 s \(server [01] on {HOST}\)", process.output)


def test_all_workers_killed_ends_the_servers(lost: Lost) -> None:
    job, *_ = lost["all workers killed"]
    await_failure(*job.servers)
    words = rf"server 0: workers? \d.* not been heard of for 10 s.* \(worker \d on {HOST}"
    assert re.search(words, job.servers[0].output)


def test_a_scheduler_ends_when_all_others_are_gone(lost: Lost) -> None:
    job, *_ = lost["all but the scheduler killed"]
    await_failure(*job.scheduler)
    words = "the scheduler has not heard of any worker or server for 10 s: all of them are gone, or"
    assert words in job.scheduler[0].output


@pytest.mark.parametrize("mishap", ["killed", "hangs"])
def test_a_worker_lost_in_a_round_of_sparse_keys_is_named(lost: Lost, mishap: str) -> None:
    job, survivor, victim = lost[f"{mishap} with sparse keys"]
    await_failure(survivor, *job.servers)
    assert (victim.wait(0) == -signal.SIGKILL) is (mishap == "killed")
    words = {
        "killed": "worker 1 has not been heard of for 3 s, nor pushed key 'rows', round 5, which",
        "hangs": "worker 1 has not pushed key 'rows', round 5, which worker 0 did, within 3 s",
    }
    assert words[mishap] in survivor.output
    assert "operations on sparse keys have not ended" in survivor.output


@pytest.mark.parametrize("moment", ["snapshot", "fork"])
def test_who_waits_for_rows_that_nobody_pulls_ends_with_the_job(lost: Lost, moment: str) -> None:
    job, survivor, victim = lost[f"killed before a {moment}"]
    await_failure(survivor, *job.servers)
    assert victim.wait() == -signal.SIGKILL
    assert "worker 1 has not been heard of for 3 s" in survivor.output
