"""The manifest for Kubernetes: its processes, run here with its environment, make a job.

What a cluster would give them is given here: an index, the pod's address, and a name of the
scheduler's that leads to it.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from tests.support.cluster import free_port
from tests.support.paths import python_path
from tests.support.processes import LIMIT

from .documents import ROOT

MANIFEST = ROOT / "docs" / "kubernetes" / "train.yaml"
PODS = {"status.podIP": "127.0.0.1"}
SCHEDULER = "localhost"  # a name, as in a cluster


@pytest.fixture(scope="module")
def service_and_job() -> tuple[Any, Any]:
    service, job = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    return service, job


def container(job: Any) -> Any:
    (found,) = job["spec"]["template"]["spec"]["containers"]
    return found


def environment(job: Any) -> dict[str, str]:
    """What the manifest has in a container's environment, in a cluster that gives PODS."""
    return {entry["name"]: entry["value"] if "value" in entry
            else PODS[entry["valueFrom"]["fieldRef"]["fieldPath"]]
            for entry in container(job)["env"]}


def test_as_many_pods_as_roles_which_all_run_at_once(service_and_job: tuple[Any, Any]) -> None:
    _, job = service_and_job
    variables, spec = environment(job), job["spec"]
    roles = 1 + int(variables["DMLC_NUM_SERVER"]) + int(variables["DMLC_NUM_WORKER"])
    assert (spec["completionMode"], spec["completions"]) == ("Indexed", roles)
    assert spec["parallelism"] == roles
    assert spec["backoffLimit"] == 0


def test_the_scheduler_has_the_name_that_others_look_for(
    service_and_job: tuple[Any, Any]
) -> None:
    service, job = service_and_job
    name, pods = job["metadata"]["name"], job["spec"]["template"]["spec"]
    assert pods["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}  # the label of a Job's pods
    assert environment(job)["DMLC_PS_ROOT_URI"] == f"{name}-0.{pods['subdomain']}"


@pytest.fixture
def processes(service_and_job: tuple[Any, Any], tmp_path: Path) -> Iterator[list[subprocess.Popen]]:
    """One for each pod, which run here."""
    _, job = service_and_job
    shutil.copy(Path(__file__).with_name("train.py"), tmp_path)
    here = {name: text for name, text in os.environ.items() if not name.startswith("DMLC_")}
    here["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {**here, "PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1", **environment(job)}
    variables.update(DMLC_PS_ROOT_URI=SCHEDULER, DMLC_PS_ROOT_PORT=str(free_port()))
    command = [*container(job)["command"], *container(job)["args"]]
    started = [subprocess.Popen(command, cwd=tmp_path, text=True, start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT,
                                env={**variables, "JOB_COMPLETION_INDEX": str(index)})
               for index in range(job["spec"]["completions"])]
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_its_processes_make_a_job(processes: list[subprocess.Popen]) -> None:
    outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    trained = ["trained by P3Worker" in output for output in outputs]
    assert trained == [False, False, False, True, True]  # as the manifest numbers them
