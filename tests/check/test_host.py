"""The check of one host, as a whole and one finding after another."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kvstore_ext.check import host, machine, network, settings, software
from kvstore_ext.check.finding import NOTE, OK, WRONG
from kvstore_ext.check.host import check_host
from kvstore_ext.mxnet_hooks import before_import

from .checks import ENTRY, PACKAGES, Check, run

NAMES = (
    *("system", "python", "numpy", "mxnet", "libmxnet", "kvstore_ext", "kernels"),
    *("encryption", "devices", "memory", "clock", "address", "ports", "job", "options", "engine"),
)


def test_this_host_is_fit() -> None:
    options = '{"slice_bytes": 1000, "clip_sigma": 2}'
    check = Check(environment={"KVSTORE_EXT_OPTIONS": options})
    assert check.report["fit"], check.report
    assert check.status == 0
    found = check.host()
    assert tuple(found) == NAMES
    assert found["mxnet"]["found"].startswith("1.9.1")
    assert found["kvstore_ext"]["found"].endswith(str(PACKAGES / "kvstore_ext"))
    assert re.match("(plain|avx2|avx512), of plain", found["kernels"]["found"])
    assert re.match("AES-256-GCM of libcrypto", found["encryption"]["found"])
    assert found["options"]["found"] == options
    assert (check.report["together"], check.report["links"]) == ([], [])


def test_environment_without_packages(bare: str) -> None:
    check = Check(python=bare)
    assert check.status == 1
    found = check.host()
    assert tuple(found) == NAMES
    assert "No module named 'numpy'" in found["numpy"]["found"]
    assert found["numpy"]["remedy"].startswith("pip install 'numpy<")
    assert [name for name in NAMES if found[name]["state"] == WRONG] == [
        *("numpy", "mxnet", "kvstore_ext"),
    ]


def test_every_way_to_start_it_works_without_packages(bare: str) -> None:
    by_path = run([bare, str(ENTRY)])
    by_name = run([bare, "-m", "kvstore_ext", "--check"])
    by_letter = run([bare, "-Bmkvstore_ext", "--check"])
    for each in (by_path, by_name, by_letter):
        assert (each.returncode, each.stderr) == (1, "")
        lines = [line.split()[:2] for line in each.stdout.splitlines() if line[:1] != " "]
        assert [line[1] for line in lines if line[1:] and line[0] in (OK, NOTE, WRONG)] == [*NAMES]
        assert "\nFound wrong: 3, each with its remedy above.\n" in each.stdout


def test_only_the_runner_is_replaced(bare: str, tmp_path: Path) -> None:
    """`--check` may be an option of other modules, which import kvstore_ext as well."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "__init__.py").write_text("import kvstore_ext")
    (tmp_path / "other" / "__main__.py").touch()
    other = run([bare, "-m", "other", "--check"], {"PYTHONPATH": f"{tmp_path}:{PACKAGES}"})
    assert "ImportError" in other.stderr or "ModuleNotFoundError" in other.stderr
    assert other.stdout == ""


def test_a_host_without_the_cipher(tmp_path: Path) -> None:
    """Of OpenSSL it has a file that cannot be loaded."""
    for name in ("libcrypto.so.3", "libcrypto.so.1.1"):
        (tmp_path / name).write_text("no library")
    check = Check(environment={"LD_LIBRARY_PATH": str(tmp_path)})
    assert check.status == 1
    found = check.host()["encryption"]
    assert (found["state"], found["found"]) == (
        WRONG, "neither libcrypto.so.3 nor libcrypto.so.1.1 can be loaded"
    )
    assert found["remedy"] == (
        "install OpenSSL 1.1.1 or newer (Debian package: libssl3), or start jobs with --no-secure"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--hosts"], "unrecognized arguments: --hosts"),
        (["-H", "/missing"], "hostfile /missing cannot be read"),
        (["--launcher", "ssh"], "--launcher ssh needs a hostfile (-H)"),
        (["--launcher", "yarn"], "argument --launcher/--cluster: invalid choice: 'yarn'"),
        (["--launcher", "slurm"], "--launcher slurm needs a hostfile (-H) or -n HOSTS"),
        (["-n", "2"], "-n is for --launcher mpi or slurm without"),
    ],
)
def test_wrong_arguments(bare: str, arguments: list[str], error: str) -> None:
    ended = run([bare, str(ENTRY), *arguments])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"kvstore-ext --check: error: {error}" in ended.stderr
    assert "kvstore-launch" not in ended.stderr


@pytest.mark.all_only
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="NumPy 1.24 is for Pythons below 3.12")
def test_real_newer_numpy(tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target"]
    subprocess.run([*install, str(tmp_path), "numpy==1.24.4"], check=True)
    check = Check(environment={"PYTHONPATH": str(tmp_path)})
    found = check.host()
    assert found["numpy"]["found"].startswith("1.24.4, with which MXNet")
    assert "module 'numpy' has no attribute" in found["mxnet"]["found"]
    assert found["mxnet"]["remedy"] == "pip install 'numpy<1.24'"
    assert found["kvstore_ext"]["state"] == OK
    assert check.status == 1


def test_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    [finding] = check_host("mine").findings
    assert (finding.name, finding.state) == ("system", WRONG)


def test_a_clock_of_which_the_kernel_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        adjtimex = staticmethod(lambda state: -1)

    monkeypatch.setattr("ctypes.CDLL", lambda name: Library)
    assert machine.clock().state == NOTE
    assert "kept by the network" not in machine.clock().found


@pytest.mark.parametrize(
    ("version", "limit", "usage", "files"),
    [
        (0, "memory.max", "memory.current", "inactive_file"),
        (1, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
def test_what_a_container_uses_is_not_free(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    limit: str,
    usage: str,
    files: str,
) -> None:
    for name, text in ((limit, 3 << 29), (usage, 5 << 28), ("memory.stat", f"anon 7\n{files} 8")):
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(machine, "_CGROUPS", [(str(tmp_path), *machine._CGROUPS[version][1:])])
    found = machine.memory()
    assert found.found == "1.5 GiB, of which 0.3 GiB are free"
    assert found.state == WRONG


NOTHING = {"error": "ImportError: nothing"}


def test_numpy() -> None:
    old = software.numpy({"numpy": {"version": "1.23.5"}})
    newer = software.numpy({"numpy": {"version": "1.26.4"}})
    second = software.numpy({"numpy": {"version": "2.1.0"}})
    assert (old.state, second.state) == (OK, WRONG)
    if sys.version_info < (3, 12):
        assert (newer.state, newer.remedy) == (WRONG, "pip install 'numpy<1.24'")
    else:
        assert newer.state == NOTE


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'mxnet'", "pip install mxnet==1.9.1 "),
        ("ModuleNotFoundError: No module named 'requests'", "pip install requests"),
        ("ModuleNotFoundError: No module named 'distutils'", "pip install setuptools"),
        ("AttributeError: module 'numpy' has no attribute 'bool'.", "pip install 'numpy<"),
        (
            "OSError: libcudart.so.11.0: cannot open shared object file: No such file",
            "install CUDA 11.2",
        ),
        (
            "OSError: libgomp.so.1: cannot open shared object file: No such file",
            "install the system's package that has libgomp.so.1",
        ),
        (
            "the process that imported it ended with status -4: ",
            "MXNet needs instructions that this processor lacks",
        ),
        ("anything else", "pip install mxnet==1.9.1 "),
    ],
)
def test_mxnet_that_cannot_be_imported(error: str, remedy: str) -> None:
    finding = software.mxnet({"mxnet": {"error": error}, "kvstore_ext": NOTHING})
    assert (finding.state, finding.found) == (WRONG, f"cannot be imported: {error}")
    assert finding.remedy.startswith(remedy)


def test_kvstore_ext_that_cannot_be_imported() -> None:
    for error, remedy in (
        ("ImportError: kvstore_ext needs mxnet 1.9.1; found mxnet 1.8.0", "pip install mxnet=="),
        ("ImportError: cannot import name '_core' from 'kvstore_ext'", "pip install ."),
    ):
        finding = software.kvstore_ext({"kvstore_ext": {"error": error}})
        assert (finding.state, finding.found) == (WRONG, f"cannot be imported: {error}")
        assert finding.remedy.startswith(remedy)


def test_another_mxnet() -> None:
    imports = {"mxnet": {"version": "1.8.0", "library": "/l.so"}, "kvstore_ext": NOTHING}
    assert software.mxnet(imports).state == WRONG
    imports["kvstore_ext"] = {"error": "ImportError: mxnet at /l.so does not fit: it has no van"}
    assert software.libmxnet(imports).found == "it has no van"
    imports = {"mxnet": {"distributed": False}, "kvstore_ext": NOTHING}
    assert software.libmxnet(imports).state == WRONG


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert software.devices({"mxnet": {"cuda": True, "gpus": 0}}).state == WRONG
    assert software.devices({"mxnet": {"cuda": True, "gpus": 8}}).found.endswith(", 8 GPUs")
    monkeypatch.setattr("os.path.exists", lambda path: "nvidia" in path)
    assert software.devices({"mxnet": {"cuda": False, "gpus": 0}}).state == NOTE


def test_job_of_another_launcher() -> None:
    variables = {
        "DMLC_ROLE": "worker",
        "DMLC_NUM_WORKER": "4",
        "DMLC_NUM_SERVER": "two",
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": "9000",
        "KVSTORE_EXT_OPTIONS": '{"slices": 2}',
    }
    check = Check(environment=variables)
    assert check.status == 1
    found = check.host()
    assert found["job"]["state"] == found["options"]["state"] == WRONG
    assert found["job"]["found"].startswith("DMLC_NUM_SERVER is 'two'; it must be")
    assert "DMLC_PS_ROOT_PORT=9000" in found["job"]["found"]
    assert found["options"]["found"].startswith("there is no option 'slices'")


def test_job(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"role": "worker", "workers": 4, "servers": 2, "scheduler": "127.0.0.1:9000"}
    facts = {"job": job, "refused_job": None}
    finding = settings.job({"kvstore_ext": facts})
    assert finding.state == OK
    assert finding.found == "worker of 4 workers, 2 servers, scheduler 127.0.0.1:9000"
    job["scheduler"] = "no.such.host.invalid:9000"
    assert settings.job({"kvstore_ext": facts}).state == WRONG
    monkeypatch.setenv("DMLC_NUM_WORKER", "4")
    assert settings.job({"kvstore_ext": NOTHING}).found == "DMLC_NUM_WORKER=4"


def test_engine_with_bulks_of_the_backward_pass_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(before_import.BULK_OF_BACKWARD, "15")
    finding = settings.engine()
    assert finding.state == NOTE
    assert "_BWD=15: gradients of so many operations leave together" in finding.found
    monkeypatch.setenv("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "1")
    assert before_import.engine_overlaps()


@pytest.mark.parametrize("way", ["", "_FWD"])
def test_engine(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    name = f"MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN{way}"
    monkeypatch.setenv(name, "1")
    assert settings.engine().state == OK
    monkeypatch.setenv(name, "15")
    assert settings.engine().state == NOTE
    assert f"{name}=15: layers wait" in settings.engine().found
    assert not before_import.engine_overlaps()


def test_ports_of_outgoing_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "range").write_text("1024\t65535\n")
    monkeypatch.setattr(network, "_OUTGOING", tmp_path / "range")
    finding = network.ports()
    assert finding.state == NOTE
    assert finding.found.endswith("outgoing connections take some, from 1024")
    assert "ip_local_port_range" in finding.remedy


def test_a_sandbox_without_the_kernels_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(network, "_OUTGOING", tmp_path / "range")
    finding = network.ports()
    assert (finding.state, finding.found) == (OK, "20000 to 32767 are open on this host itself")
    monkeypatch.setattr(host, "_BOOT_ID", tmp_path / "boot_id")
    assert host._traits({"kvstore_ext": NOTHING})["machine"] == socket.gethostname()


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMLC_INTERFACE", "lo")
    assert network.address().found == "127.0.0.1 (lo), which no other host reaches"
    assert network.ports().state in (OK, NOTE)
    monkeypatch.setenv("DMLC_INTERFACE", "eth9")
    assert network.address().found.startswith("no network interface 'eth9'")
    untried = network.ports()
    assert (untried.state, untried.found) == (
        NOTE, "20000 to 32767 were not tried, since this host has no address for a job"
    )
    monkeypatch.setenv("DMLC_NODE_HOST", "192.0.2.77")
    assert "is not one of this host's" in network.address().found
    assert "127.0.0.1" in network.address().remedy
    assert network.ports() == untried


def test_ports_at_which_nobody_can_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(address: str) -> int:
        raise ValueError("all are taken")

    monkeypatch.setattr(network.network, "free_port", taken)
    finding = network.ports()
    assert (finding.state, finding.found) == (WRONG, "20000 to 32767 are closed: all are taken")
