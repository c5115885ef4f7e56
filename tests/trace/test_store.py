"""A store's own trace: begun and ended by the script, bounded, and safe from the process's end."""
from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError, OptionError, Options
from kvstore_ext.trace.events import Kind, Message
from kvstore_ext.trace.reading import TraceError, read

from tests.report.made_jobs import Key, Made, write
from tests.support.cluster import Cluster


@pytest.fixture
def store() -> Iterator[kvstore_ext.P3Worker]:
    """A store with room for a thousand events."""
    yield from opened(1000)


@pytest.fixture
def small_store() -> Iterator[kvstore_ext.P3Worker]:
    """One with room for twenty."""
    yield from opened(20)


def opened(events: int) -> Iterator[kvstore_ext.P3Worker]:
    store = kvstore_ext.P3Worker(Options(trace_events=events))
    store.init("weight", mx.nd.zeros((5,)))
    mx.nd.waitall()
    yield store
    store.close()


def push(store: kvstore_ext.P3Worker) -> None:
    value = mx.nd.ones((5,))
    store.pushpull("weight", value, out=value)


def rounds(directory: Path) -> list[int]:
    (worker,) = read(directory).workers
    return worker.of_kind(Kind.DONE)["round"].tolist()


def test_what_lies_between_start_and_stop_is_recorded(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    push(store)
    mx.nd.waitall()
    store.start_trace(str(tmp_path / "first"))
    push(store)
    store.stop_trace()
    push(store)
    mx.nd.waitall()
    store.start_trace(str(tmp_path / "second"))
    push(store)
    store.stop_trace()
    assert rounds(tmp_path / "first") == [2]
    assert rounds(tmp_path / "second") == [4]
    (server,) = read(tmp_path / "second").servers
    assert server.of_kind(Kind.SUMMED)["round"].tolist() == [4]


def test_steps_are_counted_from_the_processs_first(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    store.start_trace(str(tmp_path), "3:4")
    for _ in range(6):
        push(store)
    store.stop_trace()
    assert rounds(tmp_path) == [2, 3]


def test_what_a_task_writes_is_recorded_by_the_task(tmp_path: Path) -> None:
    store = kvstore_ext.P3Worker(Options(trace_events=1000))
    store.set_gradient_compression("slim_dp")
    store.set_optimizer(mx.optimizer.SGD())
    weight = mx.nd.zeros((100_000,))  # which is merged in the key's turn
    store.init("weight", weight)
    mx.nd.waitall()
    store.start_trace(str(tmp_path))
    for _ in range(3):
        store.pushpull("weight", mx.nd.ones((100_000,)), out=weight)
    mx.nd.waitall()
    store.stop_trace()
    store.close()
    (worker,) = read(tmp_path).workers
    received, written = (worker.of_kind(kind) for kind in (Kind.RECEIVED, Kind.WRITTEN))
    results = received[received["message"] == Message.RESULT]
    assert len(written) == len(results) > 0
    assert not set(written["thread"]) & set(results["thread"])


def test_events_without_room_are_counted_and_told_of(
    small_store: kvstore_ext.P3Worker, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    small_store.start_trace(str(tmp_path))
    for _ in range(10):
        push(small_store)
    small_store.stop_trace()
    job = read(tmp_path)
    told = capfd.readouterr().err
    for process in job.processes:
        assert len(process.events) == 20
        assert process.dropped > 0
        assert f"the trace of {process.name} leaves out the last {process.dropped} events" in told
    assert "trace_events" in told


def test_a_key_says_what_it_is(store: kvstore_ext.P3Worker, tmp_path: Path) -> None:
    store.start_trace(str(tmp_path))
    store.stop_trace()
    (key,) = read(tmp_path).keys.values()
    assert (key.name, key.dtype, key.elements, key.method) == ("'weight'", "float32", 5, "")
    assert [(part.index, part.server, part.offset, part.elements) for part in key.slices] == [
        (0, 0, 0, 5)
    ]
    (worker,) = read(tmp_path).workers
    assert worker.options["trace_events"] == 1000


@pytest.mark.parametrize("steps", ["5", "5:5", "0:3", "7:5", "a:b", "-1:3"])
def test_steps_that_are_none_are_refused(
    store: kvstore_ext.P3Worker, tmp_path: Path, steps: str
) -> None:
    with pytest.raises(KVStoreError, match=f"found '{steps}', allowed is FIRST:LAST"):
        store.start_trace(str(tmp_path), steps)


def test_a_second_trace_at_a_time_is_refused(store: kvstore_ext.P3Worker, tmp_path: Path) -> None:
    store.start_trace(str(tmp_path))
    with pytest.raises(KVStoreError, match="is traced already"):
        store.start_trace(str(tmp_path / "other"))


def test_a_directory_that_cannot_be_is_refused_and_another_one_taken(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KVStoreError, match=r"worker 0 cannot be traced: .*file"):
        store.start_trace(str(tmp_path / "file"))
    store.start_trace(str(tmp_path / "directory"))
    push(store)
    store.stop_trace()
    assert rounds(tmp_path / "directory") == [1]


def test_the_room_is_bounded() -> None:
    with pytest.raises(OptionError, match="trace_events is 0; it must be 1 to"):
        Options(trace_events=0)


KILLED = """
import os, signal, sys
import kvstore_ext
import mxnet as mx
store = mx.kv.create("p3")
store.start_trace(sys.argv[1])
value = mx.nd.ones((5,))
store.init("weight", value)
store.pushpull("weight", value, out=value)
mx.nd.waitall()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_leaves_what_it_has_recorded(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=120)
    assert ended.returncode == -signal.SIGKILL
    (worker,) = read(tmp_path).workers
    assert not worker.complete
    assert worker.of_kind(Kind.DONE)["round"].tolist() == [0, 1]


FORKED = """
import os, sys
import kvstore_ext
import mxnet as mx

store = mx.kv.create("p3")
network = mx.gluon.nn.Dense(2, in_units=2)
network.initialize()

def run(passes):
    for _ in range(passes):
        network(mx.nd.ones((1, 2))).wait_to_read()

store.start_trace(sys.argv[1])
run(2)
child = os.fork()
run(5 if child == 0 else 2)
if child == 0:
    os._exit(5)
assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 5
store.close()
"""


def test_a_forked_child_leaves_the_trace_alone(tmp_path: Path) -> None:
    """As a DataLoader's does, whose transforms are blocks."""
    subprocess.run([sys.executable, "-c", FORKED, str(tmp_path)], timeout=120, check=True)
    (worker,) = read(tmp_path).workers
    assert len(worker.of_kind(Kind.FORWARD)) == 4


SEVERAL = """
import kvstore_ext
import mxnet as mx

stores = [mx.kv.create("p3") for _ in range(2)]
for store in stores:
    value = mx.nd.ones((5,))
    store.init(7, value)
    store.pushpull(7, value, out=value)
    mx.nd.waitall()
for store in stores:
    store.close()
"""


def test_each_store_of_a_process_alone_has_a_trace_of_its_own(tmp_path: Path) -> None:
    environment = {**os.environ, "KVSTORE_EXT_TRACE": str(tmp_path / "traces")}
    subprocess.run([sys.executable, "-c", SEVERAL], timeout=120, check=True, env=environment)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["traces", "traces-store-1"]
    for directory in tmp_path.iterdir():
        (worker,) = read(directory).workers
        assert worker.of_kind(Kind.DONE)["round"].tolist() == [0, 1]


def test_a_file_that_was_copied_in_part_is_refused(tmp_path: Path) -> None:
    write(Made([Key("one")]).trace(), tmp_path)
    file = tmp_path / "worker-0.events"
    size = file.stat().st_size
    os.truncate(file, size - 1)
    words = f"worker-0.events is cut off: it has {size - 1} bytes of at least {size}; copy it again"
    with pytest.raises(TraceError, match=words):
        read(tmp_path)


def test_of_a_killed_process_s_file_what_it_holds_is_read(tmp_path: Path) -> None:
    write(Made([Key("one")]).trace(), tmp_path)
    file = tmp_path / "worker-0.events"
    expected = read(tmp_path).workers[0].events
    with file.open("r+b") as changed:
        changed.seek(16)
        changed.write(struct.pack("<Q", 1 << 30))  # events for which there is room
    os.truncate(file, 4096 + (48 << 30))
    np.testing.assert_array_equal(read(tmp_path).workers[0].events, expected)


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no trace"):
        read(tmp_path)
    (tmp_path / "worker-0.events").write_bytes(b"x" * 5000)
    with pytest.raises(TraceError, match="is no trace"):
        read(tmp_path)
    (tmp_path / "worker-0.events").write_bytes(b"x")
    with pytest.raises(TraceError, match="it has 1 bytes"):
        read(tmp_path)


def test_two_traces_of_one_process_are_no_trace_of_a_job(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        store.start_trace(str(tmp_path / name))
        store.stop_trace()
    with pytest.raises(TraceError, match="two traces of"):
        read(tmp_path)


def test_a_trace_of_this_process_is_not_written_over(
    store: kvstore_ext.P3Worker, small_store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    store.start_trace(str(tmp_path))
    with pytest.raises(KVStoreError, match="has a trace of this process already: name another"):
        small_store.start_trace(str(tmp_path))
    store.stop_trace()
    with pytest.raises(KVStoreError, match="has a trace of this process already: name another"):
        store.start_trace(str(tmp_path))


def test_what_has_kept_a_trace_from_beginning_does_not_keep_the_next(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "worker-0.json"
    in_the_way.mkdir()
    with pytest.raises(KVStoreError, match=r"worker-0\.json"):
        store.start_trace(str(tmp_path))
    in_the_way.rmdir()
    store.start_trace(str(tmp_path))
    store.stop_trace()
    assert len(read(tmp_path).workers) == 1


def test_traces_of_two_jobs_are_no_trace_of_one(
    store: kvstore_ext.P3Worker, small_store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    for name, each in (("earlier", store), ("later", small_store)):
        each.start_trace(str(tmp_path / name))
        each.stop_trace()
    jobs = [read(tmp_path / name).workers[0].job for name in ("earlier", "later")]
    # The earlier job had a worker more.
    for ending in (".events", ".json"):
        worker = (tmp_path / "earlier" / "worker-0").with_suffix(ending)
        shutil.copy(worker, tmp_path / "later" / f"worker-1{ending}")
    found = f"server-0.events is of job {jobs[1]}, .*worker-1.events of job {jobs[0]}"
    with pytest.raises(TraceError, match=found):
        read(tmp_path / "later")
    # What does not say whose it is, is nobody's.
    (tmp_path / "later" / "worker-1.json").unlink()
    unknown = "worker-1.events does not say of which job it is, .*worker-1.json beside it is miss"
    with pytest.raises(TraceError, match=unknown):
        read(tmp_path / "later")


def test_a_copy_of_a_trace_is_no_process_of_the_job(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    store.start_trace(str(tmp_path))
    store.stop_trace()
    shutil.copy(tmp_path / "worker-0.events", tmp_path / "worker-0.old.events")
    with pytest.raises(TraceError, match=r"worker-0\.old\.events has another name"):
        read(tmp_path)


def test_a_line_that_was_cut_off_ends_what_is_said(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    store.start_trace(str(tmp_path))
    store.stop_trace()
    about = tmp_path / "worker-0.json"
    first = about.read_text().splitlines()[0]
    assert json.loads(first)["process"]["role"] == "worker"
    about.write_text(first + '\n{"key": {"ident')
    job = read(tmp_path)
    assert not job.keys
    assert not job.workers[0].complete


def open_a_store() -> None:
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    mx.kv.create("p3")


def push_and_broadcast() -> None:
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    value, told = mx.nd.ones((5,)), mx.nd.ones((5,))
    store.init("weight", value)
    for _ in range(4):
        store.pushpull("weight", value, out=value)
        for _ in range(3):
            store.broadcast_from(0, "told", told)
        mx.nd.waitall()
    store.close()


def test_a_broadcast_is_no_step_and_no_gradient(cluster: Cluster, tmp_path: Path) -> None:
    environment = {"KVSTORE_EXT_TRACE": str(tmp_path / "trace")}
    cluster.run(push_and_broadcast, workers=2, servers=1, environment=environment)
    job = read(tmp_path / "trace")
    for process in job.processes:
        steps = process.of_kind(Kind.STEP)["round"]
        assert set(steps) <= {1, 2, 3, 4}, process.name
        assert {1, 2, 3} <= set(steps), process.name
    for worker in job.workers:
        assert sorted(worker.gradients()["round"].tolist()) == [1, 2, 3, 4]
        assert sorted(worker.exchanges["round"].tolist()) == [1, 2, 3, 4]


def test_a_job_that_cannot_be_traced_does_not_begin(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {"KVSTORE_EXT_TRACE": str(tmp_path / "file")}
    job = cluster.start(open_a_store, environment=environment)
    for worker in job.workers:
        assert worker.wait() == 1
        assert "ClusterError: worker " in worker.output
        assert f"cannot be traced: [Errno 17] File exists: '{tmp_path / 'file'}'" in worker.output
