"""`--launcher mpi` under a real Open MPI, and the commands that it is given."""

from __future__ import annotations

import signal

import pytest
from kvstore_ext.launcher.agent import task_number
from kvstore_ext.launcher.far_ends import ENTRY, agent_command
from kvstore_ext.launcher.hosts import Host
from kvstore_ext.launcher.mpi import mpirun_command

from tests.support.system_packages import need

from .jobs import STAY, STUBBORN, Job
from .keys import assert_one_key, keys
from .sshd import HOSTS, Sshd

OPTIONS = ["--launcher", "mpi", "--interface", "lo"]
SECURE, PLAIN = "--secure", "--no-secure"  # one is said, as servers here are shell commands
# Open MPI refuses root, as which tests in containers run, without these.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(autouse=True)
def _open_mpi() -> None:
    need("mpirun")


def test_roles_and_environment(job: Job) -> None:
    worker = "env; echo error >/dev/stderr"
    arguments = ["-n", "2", "-s", "1", "--env", "GIVEN=a  b", "--server-command", "env"]
    environment = {**ENVIRONMENT, "DMLC_NODE_HOST": "10.9.9.9"}
    status = job.run(*OPTIONS, PLAIN, *arguments, "sh", "-c", worker, environment=environment)
    assert status == 0, job.errors
    for name in ("worker-0", "worker-1", "server-0", "scheduler-0"):
        role, rank = name.split("-")
        lines = job.log(name).splitlines()
        variables = dict(line.split("=", 1) for line in lines if "=" in line)
        assert variables["DMLC_ROLE"] == role
        assert variables["KVSTORE_EXT_LAUNCH_RANK"] == variables["KVSTORE_EXT_LOCAL_RANK"] == rank
        assert variables["DMLC_PS_ROOT_URI"] == "127.0.0.1"
        assert variables["GIVEN"] == "a  b"
        assert "KVSTORE_EXT_LAUNCH_TOKEN" not in variables
        assert variables["DMLC_NODE_HOST"] == "127.0.0.1"
        assert ("error" in lines) == (role == "worker")
    assert "[worker 1] error" in job.lines


def test_one_key(job: Job) -> None:
    assert_one_key(keys(job, *OPTIONS, SECURE, environment=ENVIRONMENT))


def test_two_hosts(job: Job, sshd: Sshd) -> None:
    hostfile = job.directory / "hosts"
    hostfile.write_text("\n".join(HOSTS))
    agent = f"ssh -F {sshd.config} -p {sshd.port}"
    mpi_options = f"--mca plm_rsh_agent '{agent}' --mca oob_tcp_if_include lo"
    arguments = ["-H", str(hostfile), f"--launcher-options={mpi_options}", "-n", "4", "-s", "1"]
    worker = 'echo "remote: $REMOTE"'
    arguments += ["--server-command", "true", "sh", "-c", worker]
    assert job.run(*OPTIONS, PLAIN, *arguments, environment=ENVIRONMENT) == 0, job.errors
    # The first host is this one, to which Open MPI needs no ssh.
    workers = sorted(line for line in job.lines if line.startswith("[worker"))
    assert workers == [
        "[worker 0] remote: ",
        "[worker 1] remote: yes",
        "[worker 2] remote: ",
        "[worker 3] remote: yes",
    ]


def test_failing_server(job: Job) -> None:
    server = "[ $DMLC_ROLE = scheduler ] || { echo why; exit 9; }; sleep 1000"
    arguments = ["-n", "2", "-s", "1", "--server-command", f"sh -c '{server}'", "sleep", "1000"]
    assert job.run(*OPTIONS, PLAIN, *arguments, environment=ENVIRONMENT) == 9
    assert job.errors[1].startswith("launch: server 0 on ")
    assert job.errors[1].endswith(" ended with exit status 9")
    assert job.errors[3] == "    why"
    job.assert_gone()


def test_nothing_outlives_the_launcher(job: Job) -> None:
    arguments = ["-n", "2", "-s", "1", "--server-command", STAY, "sh", "-c", STUBBORN]
    job.start(*OPTIONS, PLAIN, *arguments, environment=ENVIRONMENT)
    for name in ("worker 0", "worker 1", "server 0", "scheduler 0"):
        job.wait_for_line(f"[{name}] up")
    job.signal(signal.SIGKILL)
    assert job.wait() == -9
    job.assert_gone()


def test_an_interface_that_no_process_finds(job: Job) -> None:
    arguments = [*OPTIONS, PLAIN, "--interface", "none0", "-n", "1", "true"]
    assert job.run(*arguments, environment=ENVIRONMENT) == 1
    assert any("no network interface 'none0' with an IPv4" in line for line in job.errors)


def test_mpirun_that_fails(job: Job) -> None:
    arguments = ["--launcher-options=--no_such_option 1", "-n", "1", "true"]
    assert job.run(*OPTIONS, PLAIN, *arguments, environment=ENVIRONMENT) != 0
    assert job.errors[1].startswith("launch: mpirun on localhost ended with exit status ")
    assert any("no_such_option" in line for line in job.errors[2:])


def test_commands() -> None:
    hosts = [Host("one"), Host("two")]
    join = agent_command("py", "mpi", ["10.0.0.1:4000", "10.1.0.1:4000"], secure=True)
    assert join == ["py", "-S", ENTRY, "--join", "mpi", "10.0.0.1:4000,10.1.0.1:4000", "--secure"]
    assert mpirun_command(5, hosts, ["--quiet"], join, open_mpi=True) == [
        *["mpirun", "-n", "5", "--map-by", "node:OVERSUBSCRIBE", "--bind-to", "none"],
        *["-x", "KVSTORE_EXT_LAUNCH_TOKEN", "--host", "one,two", "--quiet", *join],
    ]
    assert mpirun_command(5, hosts, [], join, open_mpi=False) == [
        *["mpirun", "-n", "5", "-ppn", "1", "-hosts", "one,two", *join],
    ]
    assert "--host" not in mpirun_command(5, [], [], join, open_mpi=True)
    assert "-hosts" not in mpirun_command(5, [], [], join, open_mpi=False)


def test_task_number() -> None:
    assert task_number("mpi", {"OMPI_COMM_WORLD_RANK": "3", "SLURM_PROCID": "0"}) == 3
    assert task_number("mpi", {"PMI_RANK": "4"}) == 4
    assert task_number("slurm", {"SLURM_PROCID": "5", "PMI_RANK": "0"}) == 5
    with pytest.raises(ValueError, match="none of SLURM_PROCID is in the environment"):
        task_number("slurm", {"PMI_RANK": "0"})
