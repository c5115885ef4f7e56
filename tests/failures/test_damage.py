"""What is damaged on its way ends the job, where the option checksum looks for it."""
from __future__ import annotations

import re
import shutil
import socket
import subprocess

import pytest

from tests.support.cluster import AT_ONCE, Cluster, await_failure

# Stands in for a network card that fails: ZeroMQ hands all that it sends to send(), and one bit of
# what goes out first with this marker, a run of numbers, comes to be another.
FAILING_CARD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

ssize_t send(int socket, const void* bytes, size_t count, int flags) {
  static ssize_t (*real)(int, const void*, size_t, int);
  static int done;
  static float marker[100];
  if (!real) {
    for (int i = 0; i < 100; ++i) marker[i] = 1.625f;
    *(void**)&real = dlsym(RTLD_NEXT, "send");
  }
  char* found = done ? 0 : memmem(bytes, count, marker, sizeof marker);
  if (found) {
    found[41] ^= 64;
    ssize_t sent = real(socket, bytes, count, flags);
    found[41] ^= 64;
    done = sent > found + 41 - (const char*)bytes;
    return sent;
  }
  return real(socket, bytes, count, flags);
}
"""


def train(rank_of_marker: str) -> None:
    """Pushes numbers twice; the failing card knows those of the worker of this rank."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    value = mx.nd.zeros((3000,))
    store.broadcast("key", value, out=value)
    found = set()
    for _ in range(2):
        marked = str(store.rank) == rank_of_marker
        store.pushpull("key", mx.nd.full((3000,), 1.625 if marked else 1.0), out=value)
        found.update(value.asnumpy().tolist())
    print("got", found)
    store.close()


@pytest.fixture(scope="module")
def failing_card(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    directory = tmp_path_factory.mktemp("card")
    source, library = directory / "card.c", directory / "card.so"
    source.write_text(FAILING_CARD)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return str(library)


@pytest.mark.parametrize("checksum", [True, False])
def test_a_bit_that_changes_on_its_way(
    cluster: Cluster, failing_card: str, checksum: bool
) -> None:
    job = cluster.start(
        train,
        "1",
        servers=1,
        options={**AT_ONCE, "checksum": checksum, "slice_bytes": 4000},
        environment={"LD_PRELOAD": failing_card},
    )
    if not checksum:  # nobody notices
        job.wait()
        assert any(re.search(r"got \{[^}]+, ", worker.output) for worker in job.workers)
        return
    await_failure(*job.workers, *job.servers, *job.scheduler)
    for process in job.processes:
        assert "server 0: a push of key " in process.output
        assert " was damaged on its way: its checksum is not that of its bytes" in process.output
        assert f"; it came from worker 1 on {socket.gethostname()}" in process.output
