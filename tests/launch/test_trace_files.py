"""The files of a trace come to the launcher's host, and nothing else does."""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path

import pytest
from kvstore_ext.launcher.trace_files import TraceCollection, TraceFiles

from .jobs import REPORT, Job

# What a worker does that is traced, for a shell.
WRITE = (
    "mkdir -p traces; name=$PWD/traces/worker-$KVSTORE_EXT_LAUNCH_RANK; "
    f'{REPORT} "{{\\"traced\\": \\"$name\\"}}"; '
    "head -c 3000000 /dev/zero > $name.events; echo of $name > $name.json; "
)


# An interpreter that sees another directory in the place of the trace's, as on another host.
ELSEWHERE = """#!/bin/sh
exec unshare --map-root-user --mount sh -c \
    'mount --bind {there} {here} && exec {python} "$@"' sh "$@"
"""


def away(job: Job) -> list[str]:
    """Returns options by which processes have a directory of their own for the trace."""
    here, there = job.directory / "traces", job.directory / "there"
    here.mkdir()
    there.mkdir()
    python = job.directory / "python"
    python.write_text(ELSEWHERE.format(here=here, there=there, python=sys.executable))
    python.chmod(0o755)
    return ["--python", str(python), "--trace", "traces"]


def test_they_come_from_other_hosts(job: Job) -> None:
    servers = ["-s", "1", "--server-command", "true"]
    assert job.run(*away(job), "-n", "2", *servers, "sh", "-c", WRITE) == 0, job.errors
    here, there = job.directory / "traces", job.directory / "there"
    assert len(list(here.iterdir())) == 4  # no mark, and nothing unfinished
    for file in there.iterdir():
        assert (here / file.name).read_bytes() == file.read_bytes()
    assert (here / "worker-0.events").stat().st_size == 3_000_000


def test_those_of_a_killed_process_come_too(job: Job) -> None:
    servers = ["--server-command", "sleep 1000"]
    assert job.run(*away(job), "-n", "1", *servers, "sh", "-c", f"{WRITE}kill -9 $$") == 137
    assert (job.directory / "traces" / "worker-0.events").stat().st_size == 3_000_000


def test_they_stay_where_the_launcher_has_them(job: Job) -> None:
    command = ["sh", "-c", f"{WRITE}ls -A traces; ls -i traces/worker-0.json"]
    servers = ["--server-command", "true"]
    assert job.run("-n", "1", *servers, "--trace", "traces", *command) == 0, job.errors
    [mark] = [line for line in job.lines if ".launcher-" in line]
    assert not (job.directory / "traces" / mark.split()[-1]).exists()
    number = (job.directory / "traces" / "worker-0.json").stat().st_ino
    assert any(f"{number} traces/worker-0.json" in line for line in job.lines)


def test_a_directory_that_cannot_be_made_here(job: Job) -> None:
    (job.directory / "file").write_text("")
    servers = ["--server-command", "true"]
    assert job.run("-n", "1", *servers, "--trace", "file/traces", "true") == 0, job.errors
    reason = f"Not a directory: {job.directory}/file/traces"
    assert f"launch: the trace's files stay on the hosts of their processes: {reason}" in job.errors


def sent(directory: Path, *names: str) -> list[tuple[dict[str, object], bytes]]:
    """Returns what a supervisor sends of a trace in these files, and of none in others."""
    files = TraceFiles(str(directory), "mark")
    for name in names:
        (directory / f"{name}.events").write_bytes(b"x" * 1_500_000)
        (directory / f"{name}.json").write_bytes(b"")
        files.note({"traced": str(directory / name)})
    files.note({"traced": "/elsewhere/worker-7"})
    files.note({"traced": 7})
    return list(files.messages())


def test_pieces_make_the_same_files(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    said: list[str] = []
    collection = TraceCollection(str(here), said.append)
    for message, payload in sent(there, "worker-0", "server-1"):
        collection.take(message, payload)
    collection.close()
    assert {file.name: file.read_bytes() for file in here.iterdir()} == {
        file.name: file.read_bytes() for file in there.iterdir()
    }
    assert said == []


def test_a_file_that_has_not_come_whole_is_named(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    said: list[str] = []
    collection = TraceCollection(str(here), said.append)
    message, payload = sent(there, "worker-0")[0]
    collection.take(message, payload)
    collection.close()
    assert said == [f"{here}/worker-0.events has not come whole from its host"]
    assert [file.name for file in here.iterdir()] == ["worker-0.events.part"]


@pytest.mark.parametrize(
    "name", ["../worker-0.json", "worker-0.py", "/etc/worker-0.json", "", "worker-0.json\n", 7]
)
def test_another_name_is_not_taken(tmp_path: Path, name: object) -> None:
    here = tmp_path / "here"
    collection = TraceCollection(str(here), pytest.fail)
    collection.take({"traced": name}, zlib.compress(b"planted"))
    collection.take({"traced": "worker-0.json"}, b"not compressed")
    collection.close()
    assert list(here.iterdir()) == []
    assert os.listdir(tmp_path) == ["here"]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    collection = TraceCollection(str(tmp_path), pytest.fail)
    (tmp_path / "worker-0.json.part").symlink_to(victim)
    collection.take({"traced": "worker-0.json"}, zlib.compress(b"{}"))
    collection.take({"traced": "worker-0.json"}, zlib.compress(b""))
    collection.close()
    assert victim.read_text() == "mine"
    assert (tmp_path / "worker-0.json").read_text() == "{}"
