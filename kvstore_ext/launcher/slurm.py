"""The srun command that starts an agent for every process of the job."""

from __future__ import annotations

from typing import Sequence

from .hosts import Host


def srun_command(
    tasks: int,
    hosts: Sequence[Host],
    options: Sequence[str],
    agent: Sequence[str],
) -> list[str]:
    """Returns the command that runs `agent` as each task; without hosts Slurm chooses
    them, or has in the job it runs in."""
    command = ["srun", f"--ntasks={tasks}"]
    # In turn over the hosts; a server and a worker share a processor, and neither is tied to it;
    # a task that ends is no reason to end the others, which is for the launcher to say.
    # Outside of an allocation Slurm counts one task a node then. How many processors that has is
    # for `options` to say: any number from here would be too low in an allocation that has more.
    command += ["--distribution=cyclic", "--overcommit", "--cpu-bind=none"]
    command += ["--kill-on-bad-exit=0", "--wait=0", "--export=ALL", "--input=none"]
    if hosts:
        names = ",".join(host.name for host in hosts)
        command += [f"--nodes={len(hosts)}", f"--nodelist={names}"]
    return [*command, *options, *agent]
