"""What is wrong with a command line or a hostfile is said plainly, before anything is started."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Callable

import kvstore_ext
import pytest
from kvstore_ext import compression
from kvstore_ext.launcher import store_options
from kvstore_ext.launcher.arguments import make_parser
from kvstore_ext.launcher.hosts import Host, deal_servers, deal_workers, read_hostfile
from kvstore_ext.launcher.mistakes import check_command
from kvstore_ext.launcher.network import free_port

import kvstore_run

from .jobs import Job


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0", "true"], "argument -n/--num-workers: found '0', allowed are whole numbers"),
        (["-n", "two", "true"], "argument -n/--num-workers: found 'two'"),
        (["-n", "1", "-s", "-1", "true"], "argument -s/--num-servers"),
        (["true"], "the following arguments are required: -n/--num-workers"),
        (["-n", "1"], "no command for the workers"),
        (["-n", "1", "--"], "no command for the workers"),
        (
            ["-n", "1", "--launcher", "yarn", "true"],
            "found 'yarn', allowed are local, ssh, mpi, slurm; ",
        ),
        (["-n", "1", "train.py", "--lr", "1"], "no program; did you mean: python train.py"),
        (["-n", "1", "python train.py --lr 1"], "did you mean: python train.py --lr 1"),
        (["-n", "1", "python train.py"], "'python train.py' is no program; did you mean: python t"),
        (["-n", "1", "pyhton", "train.py"], "no program; did you mean: python train.py"),
        (["-n", "1", "--dry-run", "zzz", "train.py"], "'zzz' is no program here"),
        (["-n", "1", "python3", "trian.py", "--lr", "1"], "; did you mean: train.py"),
        (["-n", "1", "python3", "sub/train.py"], "there is no script 'sub/train.py' in "),
        (
            ["-n", "1", "--env", "PATH=/none", "kvstore-ext", "--join", "train.py"],
            "did you mean: python -m kvstore_run --join train.py",
        ),
        (["-n", "1", "A=b", "python", "c"], "did you mean: --env A=b python c"),
        (["-n", "1", "--only-rank", "1", "true"], "--only-rank: found 1, allowed are 0 to 0"),
        (["-n", "1", "--env-worker", "KEY", "true"], "allowed are KEY=VALUE, KEY:VALUE"),
        (["-n", "1", "--env", "KEY", "true"], "argument --env: found 'KEY', allowed is KEY=VALUE"),
        (["-n", "1", "--env", "1K=2", "true"], "found '1K=2', allowed is KEY=VALUE"),
        (["-n", "1", "--env", "DMLC_ROLE=worker", "true"], "DMLC_ROLE is set by the launcher"),
        (["-n", "1", "--env", "DMLC_INTERFACE=lo", "true"], "by the launcher (see --interface)"),
        (
            ["-n", "1", "--env-server", "KVSTORE_EXT_OPTIONS=[]", "true"],
            "KVSTORE_EXT_OPTIONS is '[]', which is no JSON object",
        ),
        (
            ["-n", "1", "--env", "KVSTORE_EXT_OPTIONS={slice_bytes: 8}", "true"],
            "which is no JSON object: Expecting property name",
        ),
        (
            ["-n", "1", "--env", 'KVSTORE_EXT_OPTIONS={"slice_byte": 1}', "true"],
            "KVSTORE_EXT_OPTIONS: there is no option 'slice_byte'; did you mean 'slice_bytes'?",
        ),
        (
            ["-n", "1", "--env-worker", 'KVSTORE_EXT_OPTIONS={"zookeeper": 1}', "true"],
            "there is no option 'zookeeper'; kvstore-ext --list has all",
        ),
        (["-n", "1", "--trace-steps", "5:6", "true"], "--trace-steps: only with --trace DIR"),
        (["-n", "1", "--trace", "d", "--trace-steps", "6:6", "true"], "found '6:6', allowed is A:"),
        (
            ["-n", "1", "--trace", "t", "true"],
            "in t (t/attempt-0/worker-0.events): take a new directory for each job, such as "
            "--trace t-3",
        ),
        (
            ["-n", "1", "--join", "python3", "train.py"],
            "--join is an option of kvstore-ext: kvstore-launch ... kvstore-ext --join train.py",
        ),
        (
            ["-n", "1", "--snapshot", "d", "python3", "train.py"],
            "kvstore-launch ... kvstore-ext --snapshot DIR train.py",
        ),
        (["-n", "1", "--port", "65536", "true"], "found '65536', allowed are 1 to 65535"),
        (["-n", "1", "--grace", "0", "true"], "found '0', allowed are seconds above 0"),
        (["-n", "1", "--notice", "soon", "true"], "found 'soon', allowed are seconds above 0"),
        (
            ["-n", "1", "--env", "KVSTORE_EXT_NOTICE=5", "true"],
            "KVSTORE_EXT_NOTICE is set by the launcher (see -n, -s, --port, --notice)",
        ),
        (["-n", "1", "--server-command", "'", "true"], "No closing quotation"),
        (["-n", "1", "--launcher", "ssh", "true"], "--launcher ssh needs a hostfile (-H)"),
        (["-n", "1", "-H", "missing", "true"], "hostfile missing cannot be read"),
        (["-n", "1", "-H", "hosts", "--launcher", "local", "true"], "takes no hostfile"),
        (["-n", "4", "-H", "hosts", "true"], "4 workers, but the hostfile has slots for only 3"),
        (["-n", "1", "-H", "hosts", "--launcher", "mpi", "true"], "for --launcher ssh only"),
    ],
)
def test_usage(
    job: Job, refuse: Callable[..., list[str]], arguments: list[str], message: str
) -> None:
    (job.directory / "hosts").write_text("one slots=1\ntwo:2222 slots=2\n")
    (job.directory / "train.py").write_text("")
    for traced in ("t/attempt-0", "t-2"):
        (job.directory / traced).mkdir(parents=True)
        (job.directory / traced / "worker-0.events").touch()
    assert message in refuse(*arguments)[-1]


def test_usage_of_the_command(job: Job) -> None:
    (job.directory / "hosts").write_text("one slots=1\ntwo:2222 slots=2\n")
    assert job.run("-n", "4", "-H", "hosts", "true") == 2
    assert "4 workers, but the hostfile has slots for only 3" in job.errors[-1]
    assert "Traceback" not in "".join(job.errors)
    assert job.lines == []
    assert not job.log_dir.exists()
    assert job.run("--join", "-n", "1", "python3", "train.py") == 2
    assert "--join is an option of kvstore-ext" in job.errors[-1]


def test_an_interpreter_that_only_other_hosts_have() -> None:
    check_command(["python3.99", "train.py"], local=False)
    with pytest.raises(ValueError, match="did you mean: python3 train"):
        check_command(["pyhton3", "train.py"], local=False)
    with pytest.raises(ValueError, match="did you mean: python3 train"):
        check_command(["python3.99", "train.py"], local=True)


@pytest.mark.parametrize("stream", ["0<&-", "1>&-", "2>&-"])
def test_a_launcher_that_was_started_without_a_stream(stream: str, job: Job) -> None:
    job.entry = ["sh", "-c", f'exec "$@" {stream}', "sh", *job.entry]
    assert job.run("-n", "1", "--server-command", "true", "sh", "-c", "echo to the log") == 0
    assert job.log("worker-0") == "to the log\n"


def test_a_working_directory_that_is_gone(job: Job) -> None:
    job.entry = ["sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh", *job.entry]
    assert job.run("-n", "1", "true") == 2
    where = "cannot find the working directory, where processes are to run"
    assert job.errors == [f"launch: {where}: No such file or directory"]


def test_log_directory_that_cannot_be_made(job: Job) -> None:
    (job.directory / "file").write_text("")
    assert job.run("--log-dir", "file/logs", "-n", "1", "true") == 2
    assert job.errors == [
        f"launch: cannot make the log directory {job.directory}/file/logs: Not a directory; "
        "choose another directory by --log-dir"
    ]


def test_log_file_that_cannot_be_opened(job: Job) -> None:
    (job.log_dir / "worker-0.log").mkdir(parents=True)
    assert job.run("-n", "1", "true") == 2
    assert job.errors == [
        f"launch: cannot write the log {job.log_dir}/worker-0.log: Is a directory; "
        "choose another directory by --log-dir"
    ]


def test_interpreter_that_is_not_there(job: Job) -> None:
    assert job.run("--python", "/missing/python", "-n", "1", "true") == 2
    assert job.errors == ["launch: --python: found '/missing/python', which is no program here"]


def test_interpreter_that_cannot_run(job: Job) -> None:
    """It is found, yet the kernel refuses it."""
    python = job.directory / "python"
    python.write_text("#!/missing/shell\n")
    python.chmod(0o755)
    assert job.run("--python", str(python), "-n", "1", "true") == 127
    assert "cannot be run: No such file or directory" in job.errors[1]
    assert "Traceback" not in "".join(job.errors)


def test_variables_that_are_set_here(job: Job) -> None:
    arguments = ["-n", "1", "--env-worker", "GIVEN", "--server-command", "true"]
    assert job.run(*arguments, "sh", "-c", "echo $GIVEN", environment={"GIVEN": "a b"}) == 0
    assert "[worker 0] a b" in job.lines


def test_missing_program(job: Job) -> None:
    environment = {"PATH": str(job.directory)}
    assert job.run("-n", "1", "--launcher", "mpi", "true", environment=environment) == 2
    assert job.errors == ["launch: no program mpirun on the PATH (Debian package: openmpi-bin)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--interface", "none0"], "no network interface 'none0' with an IPv4 address on"),
        (["--env", "DMLC_PS_ROOT_URI=192.0.2.9"], "cannot listen at 192.0.2.9"),
    ],
)
def test_unusable_network(job: Job, arguments: list[str], message: str) -> None:
    assert job.run("-n", "1", *arguments, "true") == 1
    assert message in job.errors[1]
    assert job.lines == []


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match="Address already in use; leave --port out") as error:
            free_port("127.0.0.1", port)
    assert str(error.value).startswith(f"the host {socket.gethostname()} cannot listen at 127.0.0.")


def test_the_launcher_knows_all_options_of_the_stores() -> None:
    of_stores = {known.name for known in dataclasses.fields(kvstore_ext.Options)}
    assert store_options.option_names() >= {*of_stores, *compression.option_names()}


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    for make in (make_parser, kvstore_run._parser):
        with pytest.raises(SystemExit) as ended:
            make().parse_args(["--version"])
        assert ended.value.code == 0
    versions = [f"{name} {kvstore_ext.__version__}" for name in ("kvstore-launch", "kvstore-ext")]
    assert capsys.readouterr().out.splitlines() == versions


def test_hostfile(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# the cluster\none slots=2  # near the door\n\n  me@two.lan:2222\n10.0.0.3\n")
    expected = [Host("one", None, 2), Host("me@two.lan", 2222, None), Host("10.0.0.3")]
    assert read_hostfile(str(path)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no host"),
        ("# nothing\n", "names no host"),
        ("one\n-oProxyCommand=x\n", "line 2: '-oProxyCommand=x' is not the name of a host"),
        ("one:0\n", "line 1: found port '0', allowed are 1 to 65535"),
        ("one:ssh\n", "line 1: found port 'ssh', allowed are 1 to 65535"),
        ("one slots=0\n", "line 1: found 'slots=0', allowed is slots=N with N of 1 or more"),
        ("one gpus=2\n", "line 1: found 'gpus=2', allowed is slots=N"),
        ("one\ntwo\none\n", "names one 2 times, not once"),
    ],
)
def test_bad_hostfile(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(ValueError, match="hostfile") as error:
        read_hostfile(str(path))
    assert message in str(error.value)


def test_hosts_are_dealt_in_turn() -> None:
    one, two, three = Host("one", slots=1), Host("two"), Host("three", slots=2)
    assert deal_workers([one, two, three], 6) == [one, two, three, two, three, two]
    assert deal_servers([one, two, three], 4) == [one, two, three, one]
    with pytest.raises(ValueError, match="4 workers, but the hostfile has slots for only 3"):
        deal_workers([one, three], 4)
