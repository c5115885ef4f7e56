"""The processes of an arm's job on a cluster of its own, from the first to the last of them."""
from __future__ import annotations

import json
import math
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Sequence

from benchmarks.cluster import Cluster, Host, Link
from benchmarks.launched import inherited
from benchmarks.replay.arms import ENVIRONMENT, OURS, Arm, Runtime, environment_of
from benchmarks.replay.forking import Fork, Interpreter

_PORT = 9091  # a cluster's addresses are its own, and so are its ports
_KILLED = 10.0  # seconds that a killed one may take to end
_GOING = 10.0  # seconds that processes may take to end once all workers' results are there


class JobError(Exception):
    """A process of a run failed, or the run took too long."""


class Interpreters:
    """Those that arms need, each started once. A context manager."""

    def __init__(self) -> None:
        self._started: Dict[Runtime, Interpreter] = {}

    def __enter__(self) -> Interpreters:
        return self

    def __exit__(self, *_error: object) -> None:
        for interpreter in self._started.values():
            interpreter.close()

    def get(self, arm: Arm) -> Interpreter:
        """The interpreter whose forks are the processes of an arm."""
        if arm.runtime not in self._started:
            runtime, environment = arm.runtime, {**inherited(), **ENVIRONMENT}
            self._started[runtime] = Interpreter(runtime.python, runtime.modules, environment)
        return self._started[arm.runtime]


def run(
    arm: Arm,
    hosts: int,
    link: Link,
    work: str,
    settings: Dict[str, Any],
    interpreters: Interpreters,
    limit: float,
) -> List[Dict[str, Any]]:
    """Runs an arm's job: on every host a worker, and a server where the arm has servers.

    Parameters
    ----------
    link : Link
        Of each host.
    work : str
        The workers' `module:function`. It is called with settings as JSON, among them what the
        arm says of stores and the number of the host, and with the name of a file for its result,
        which is JSON and has the worker's rank.
    limit : float
        Seconds that the job may take.

    Returns
    -------
    list of dict
        The workers' results, by ranks.

    Raises
    ------
    JobError
        Naming who failed, with its last lines.
    """
    interpreter = interpreters.get(arm)
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-job-") as directory, Cluster(
        hosts, link
    ) as cluster:
        job = _Job(arm, cluster, interpreter, Path(directory))
        try:
            job.start(work, settings, limit)
            job.wait(limit)
        finally:
            job.end()
        return job.results()


class _Job:
    """The processes of a run."""

    def __init__(
        self, arm: Arm, cluster: Cluster, interpreter: Interpreter, directory: Path
    ) -> None:
        self._arm, self._cluster = arm, cluster
        self._interpreter, self._directory = interpreter, directory
        self._workers: Dict[str, Fork] = {}
        self._others: Dict[str, Fork] = {}

    def start(self, work: str, settings: Dict[str, Any], limit: float) -> None:
        hosts, switch = self._cluster.hosts, self._cluster.switch
        variables = {**inherited(), **environment_of(self._arm, limit)}
        if self._arm.has_servers:
            ours = "kvstore_ext" in self._arm.runtime.modules
            role = f"benchmarks.replay.roles:{'our' if ours else 'stock'}_server"
            variables.update(_parameter_servers(switch, len(hosts)))
            self._others["scheduler"] = self._fork("scheduler", role, [], switch, variables)
            for host in hosts:
                name = f"server on {host.name}"
                self._others[name] = self._fork("server", role, [], host, variables)
            per_host: Sequence[Dict[str, str]] = [{} for _ in hosts]
        else:
            variables.update(self._rendezvous(variables, hosts, switch, limit))
            per_host = [_horovod(host, rank, len(hosts)) for rank, host in enumerate(hosts)]
        settings = {
            **settings,
            "store": self._arm.store,
            "compression": json.dumps(self._arm.compression) if self._arm.compression else "",
            "updates": self._arm.updates,
            "apart": self._arm.apart,
            "keeps_gradients": self._arm.keeps_gradients,
            "momentum": self._arm.momentum,
            "snapshots": self._arm.snapshots,
            "models": self._arm.models and asdict(self._arm.models),
        }
        for number, (host, own) in enumerate(zip(hosts, per_host)):
            arguments = [json.dumps({**settings, "host": number}), str(self._result(host))]
            self._workers[f"worker on {host.name}"] = self._fork(
                "worker", work, arguments, host, {**variables, **own}
            )

    def wait(self, limit: float) -> None:
        """Returns when the workers have ended well, and the servers after them.

        Peers' need not end once they have measured: some jobs of MXNet's P3 never do, when their
        processes have no more to do than to say farewell.
        """
        latest = time.monotonic() + limit
        processes = {**self._workers, **self._others}
        measured = math.inf
        while not all(worker.poll() == 0 for worker in self._workers.values()):
            for name, process in processes.items():
                status = process.poll()
                if status not in (None, 0):
                    raise JobError(f"{name} ended with status {status}: {_last_lines(process)}")
            if self._arm.runtime is not OURS:
                if measured == math.inf and all(map(Path.exists, self._files())):
                    measured = time.monotonic()
                if time.monotonic() > measured + _GOING:
                    return
            if time.monotonic() > latest:
                late = [name for name, fork in self._workers.items() if fork.poll() is None]
                raise JobError(f"after {limit:.0f} s there still run: {', '.join(late)}")
            time.sleep(0.05)
        latest = time.monotonic() + _GOING
        while self._arm.has_servers and any(p.poll() is None for p in self._others.values()):
            if time.monotonic() > latest:
                if self._arm.runtime is not OURS:
                    return
                late = [name for name, fork in self._others.items() if fork.poll() is None]
                raise JobError(f"after the workers ended there still run: {', '.join(late)}")
            time.sleep(0.02)

    def end(self) -> None:
        for process in [*self._workers.values(), *self._others.values()]:
            process.kill()
        latest = time.monotonic() + _KILLED
        for name, process in {**self._workers, **self._others}.items():
            while process.poll() is None:
                if time.monotonic() > latest:
                    raise JobError(f"{name} has not ended within {_KILLED:g} s of being killed")
                time.sleep(0.01)

    def results(self) -> List[Dict[str, Any]]:
        found = [json.loads(result.read_text()) for result in self._files()]
        return sorted(found, key=lambda worker: worker["rank"])

    def _fork(
        self, role: str, function: str, arguments: List[str], host: Host, variables: Dict[str, str]
    ) -> Fork:
        own = {**variables, "DMLC_ROLE": role, "DMLC_NODE_HOST": host.address}
        output = self._directory / f"{role} {host.name}.log"
        return self._interpreter.fork(function, arguments, host, own, output)

    def _result(self, host: Host) -> Path:
        return self._directory / f"{host.name}.json"

    def _files(self) -> List[Path]:
        """Those of all workers' results."""
        return [self._result(host) for host in self._cluster.hosts]

    def _rendezvous(
        self, variables: Dict[str, str], hosts: Sequence[Host], switch: Host, limit: float
    ) -> Dict[str, str]:
        """Starts Horovod's and waits for its port; returns what workers need to find it."""
        file = self._directory / "port"
        arguments = [",".join(host.address for host in hosts), str(file)]
        process = self._fork(
            "rendezvous", "benchmarks.replay.roles:rendezvous", arguments, switch, variables
        )
        self._others["rendezvous"] = process
        latest = time.monotonic() + limit
        while not file.exists():
            if process.poll() is not None or time.monotonic() > latest:
                raise JobError(f"Horovod's rendezvous does not start: {_last_lines(process)}")
            time.sleep(0.02)
        return {
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": switch.address,
            "HOROVOD_GLOO_RENDEZVOUS_PORT": file.read_text(),
            "HOROVOD_GLOO_IFACE": "eth0",
            "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_CPU_OPERATIONS": "gloo",
            # Half a minute is its own, which links that are many times slower exceed.
            "HOROVOD_GLOO_TIMEOUT_SECONDS": str(round(limit)),
        }


def _parameter_servers(switch: Host, hosts: int) -> Dict[str, str]:
    return {
        "DMLC_NUM_WORKER": str(hosts),
        "DMLC_NUM_SERVER": str(hosts),
        "DMLC_PS_ROOT_URI": switch.address,
        "DMLC_PS_ROOT_PORT": str(_PORT),
    }


def _horovod(host: Host, rank: int, size: int) -> Dict[str, str]:
    """What horovodrun gives a worker that is alone on its host."""
    return {
        "HOROVOD_HOSTNAME": host.address,
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(size),
        "HOROVOD_LOCAL_RANK": "0",
        "HOROVOD_LOCAL_SIZE": "1",
        "HOROVOD_CROSS_RANK": str(rank),
        "HOROVOD_CROSS_SIZE": str(size),
    }


def _last_lines(process: Fork) -> str:
    lines = process.output.read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-15:]) or "it wrote nothing"
