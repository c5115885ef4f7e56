"""A private Slurm of one node on the loopback."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from pathlib import Path
from typing import Iterator

from tests.support.cluster import free_port
from tests.support.system_packages import need

from .jobs import LIMIT

CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=localhost NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def serve(directory: Path) -> Iterator[dict[str, str]]:
    """Yields the environment in which srun finds this Slurm, while it is there."""
    munged, controller, node, srun = need("munged", "slurmctld", "slurmd", "srun")
    configuration = directory / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            user=pwd.getpwuid(os.geteuid()).pw_name,
            directory=directory,
            ports=[free_port(), free_port()],
            processors=os.cpu_count(),
        )
    )
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    servers = []
    try:
        for command in (
            _munge_command(munged, directory),
            [controller, "-D", "-i"],
            [node, "-D", "-N", "localhost"],
        ):
            with (directory / f"{Path(command[0]).name}.output").open("wb") as output:
                server = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
            servers.append(server)
            if command[0] == munged:
                _wait_for(directory / "munge.socket")
        # It returns when the node has reported to the controller and has run a first task.
        subprocess.run([srun, "true"], env=environment, timeout=LIMIT, check=True)
        yield {"SLURM_CONF": str(configuration)}
    finally:
        for server in reversed(servers):
            server.terminate()
            server.wait(LIMIT)


def _munge_command(munged: str, directory: Path) -> list[str]:
    key = directory / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    # --force: it would not trust a directory below one that everybody may write to.
    return [
        *[munged, "--foreground", "--force", f"--socket={directory}/munge.socket"],
        *[f"--key-file={key}", f"--pid-file={directory}/munge.pid"],
        *[f"--log-file={directory}/munge.log", f"--seed-file={directory}/munge.seed"],
    ]


def _wait_for(path: Path) -> None:
    limit = time.monotonic() + LIMIT
    while not path.exists():
        assert time.monotonic() < limit, f"no {path}"
        time.sleep(0.02)
