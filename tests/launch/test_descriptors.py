"""A limit of open files that is lower than a job's connections need is raised, or named."""

from __future__ import annotations

import shlex
import sys

import pytest
from kvstore_ext.launcher import main

from tests.support.processes import run_python

from .jobs import PULLED, TRAIN, Job

# With so few a process of a store cannot do, but Python can begin.
FEW = 20
ROOM = """
import os, resource
from kvstore_ext import descriptors
from kvstore_ext.config import Job
from kvstore_ext.descriptors import make_room, make_room_for_strangers
from kvstore_ext.errors import ClusterError

job = Job("scheduler", 300, 200, "", 0, 0, None)
opened = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4000))
make_room_for_strangers()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
descriptors._STRANGERS = 1000
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4000))
make_room_for_strangers()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
make_room(job)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - opened)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1000))
try:
    make_room(job)
except ClusterError as error:
    print(str(error).replace(str(opened + 1500), "OPENED + 1500"))
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def few(*command: str) -> list[str]:
    """Returns a command that has few open files unless it raises the limit."""
    return ["sh", "-c", f'ulimit -Sn {FEW}; exec "$@"', "sh", *command]


def test_the_launcher_has_more_processes_than_files(job: Job) -> None:
    job.entry = few(*job.entry)
    assert job.run("-n", "20", "-s", "1", "--server-command", "true", "true") == 0, job.errors


@pytest.mark.parametrize(("most", "said"), [(263, True), (264, False), (-1, False)])
def test_the_launcher_names_a_limit_that_may_be_too_low(
    most: int, said: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = []
    monkeypatch.setattr(main.resource, "getrlimit", lambda _: (100, most))
    monkeypatch.setattr(main.resource, "setrlimit", lambda _, limit: limits.append(limit))
    main.make_room(20)
    assert limits == [(min(264, most) if most > 0 else 264, most)]
    needs = "the launcher may need 264 open files for 20 processes, and can have 263: raise"
    assert (needs in capsys.readouterr().err) == said


def test_every_process_of_a_store_raises_its_limit(job: Job) -> None:
    server = shlex.join(few(sys.executable, "-m", "kvstore_run", "--serve"))
    script = TRAIN.replace("import mxnet", "import kvstore_ext, mxnet", 1)
    worker = few(sys.executable, "-c", script)
    arguments = ["-n", "1", "-s", "1", "--server-command", server, *worker]
    assert job.run(*arguments) == 0, job.errors
    assert PULLED in job.lines


def test_a_limit_of_the_system_that_is_too_low_is_named() -> None:
    most, of_strangers, raised, refused, left = run_python("-c", ROOM).stdout.splitlines()
    assert most == "(4000, 4000)"
    assert of_strangers == "(1000, 4000)"
    assert int(raised) == 3 * 500 + 512
    assert refused == (
        "this scheduler needs OPENED + 1500 open files for 500 connections, and may have 1000: "
        "raise the limit (ulimit -Hn, nofile in /etc/security/limits.conf, or systemd's "
        "LimitNOFILE)"
    )
    assert left == "(64, 1000)"
