"""kvstore-ext predict, as a user calls it."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kvstore_ext.predict import progress
from kvstore_ext.predict.devices import on
from kvstore_ext.predict.job_trace import network_of
from kvstore_ext.predict.main import main
from kvstore_ext.predict.measuring import carrying_over
from kvstore_ext.predict.network import NetworkError, digest, load
from kvstore_ext.predict.simulation import numbered
from kvstore_ext.predict.speeds import Speeds, SpeedsError
from kvstore_ext.predict.sweep import Row, best
from kvstore_ext.predict.table import choose, table
from kvstore_ext.trace.events import EVENT, Kind, Message
from kvstore_ext.trace.reading import JobTrace, KeyInfo, ProcessTrace

from tests.launch.jobs import await_file

RUNNER = Path(__file__).parents[2] / "kvstore_run.py"


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(RUNNER), "predict", *arguments],
        capture_output=True, text=True, check=False, cwd=directory,
    )  # fmt: skip


def test_it_names_the_best_store_and_what_limits_it(tmp_path):
    clusters = ["--hosts", "2,512", "--bandwidth", "10", "--stores", "p3,signsgd,ec_dnn"]
    Speeds().save(tmp_path / "given.json")  # measured ones are slow on a host that is busy
    speeds = ["--speeds", "given.json", "--save-speeds", "same.json"]
    ended = run("--model", "alexnet", *clusters, *speeds, directory=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "2 hosts, 10 Gbit/s" in ended.stdout
    assert "512 hosts, 10 Gbit/s" in ended.stdout
    found = re.findall(r"^  best: (\w+), limited by ", ended.stdout, re.MULTILINE)
    assert len(found) == 2
    assert set(found) <= {"signsgd", "ec_dnn"}  # p3 sends 32 times as much
    assert ended.stdout.count("of those that train as dist_sync does: p3, limited by ") == 2
    assert Speeds.load(tmp_path / "same.json") == Speeds()
    pictured = (tmp_path / "predict.svg").exists()
    assert pictured != ("no picture: matplotlib is not installed" in ended.stdout)


def test_its_files_may_lie_in_directories_that_are_not_there_yet(tmp_path):
    Speeds().save(tmp_path / "given.json")
    options = ["--speeds", "given.json", "--save-speeds", "a/same.json", "-o", "b/c/picture.svg"]
    cluster = ["--model", "alexnet", "--hosts", "2", "--bandwidth", "1", "--stores", "p3"]
    ended = run(*cluster, *options, directory=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert Speeds.load(tmp_path / "a" / "same.json") == Speeds()
    assert (tmp_path / "b" / "c").is_dir()


def test_codecs_with_error_feedback_take_longer():
    without = {"encode": 1.0, "add": 0.25, "decode": 0.5}
    assert carrying_over(without, 0.125) == {"encode": 1.625, "add": 0.25, "decode": 0.5}
    summed = carrying_over({**without, "encode_sum": 2.0}, 0.125)
    assert (summed["encode_sum"], summed["decode"]) == (2.75, 0.5)


def row_of(store: str, seconds: float) -> Row:
    return Row(1.0, 4, store, seconds, 32 / seconds, 0.5, "wire")


def test_a_tie_goes_to_a_store_that_mxnet_can_make_here():
    near = [row_of("p3", 1.02), row_of("dist_sync", 1.5), row_of("stock_p3", 1.0)]
    text = "\n".join(table(near))
    assert "* p3 " in text
    assert "= stock_p3 " in text
    assert "  best: p3, limited by wire; a tie with stock_p3 (10 %), whose predictions" in text
    far = [row_of("p3", 1.2), row_of("stock_p3", 1.0)]
    assert choose(far) == (far[1], [])
    assert choose(near[:2]) == (near[0], [])
    ahead = [row_of("p3", 1.0), row_of("dist_sync", 1.13), row_of("stock_p3", 1.13)]
    assert choose(ahead) == (ahead[0], [ahead[1]])
    others = near[1:]
    assert choose(others) == (others[1], [])


def test_it_says_beforehand_how_much_there_is_to_do(tmp_path, capsys, monkeypatch):
    clusters = ["--hosts", "2,4", "--bandwidth", "10", "--stores", "p3,ring"]
    Speeds().save(tmp_path / "given.json")
    speeds = ["--speeds", "given.json"]
    ended = run("--model", "alexnet", *clusters, *speeds, directory=tmp_path)
    assert "predict: 4 cases (bandwidths: 1, numbers of hosts: 2, stores: 2)" in ended.stderr
    monkeypatch.setattr(progress, "LINES_EVERY", 0.0)
    assert list(progress.followed(iter("abc"), 3)) == ["a", "b", "c"]
    said = [f"kvstore-ext predict: {number} of 3 cases" for number in (1, 2)]
    assert capsys.readouterr().err.splitlines() == said


def test_it_measures_how_fast_this_host_encodes(tmp_path):
    clusters = ["--hosts", "2", "--bandwidth", "10", "--stores", "p3"]
    ended = run("--model", "alexnet", *clusters, "--save-speeds", "mine.json", directory=tmp_path)
    assert ended.returncode == 0, ended.stderr
    codecs = Speeds.load(tmp_path / "mine.json").codecs
    assert set(codecs) >= {"terngrad", "qsgd", "dgc", "slim_dp"}
    assert all(seconds > 0 for each in codecs.values() for seconds in each.values())


@pytest.fixture
def mistaken(tmp_path, monkeypatch, capsys):
    """Calls the command with a mistake, in this process, where that changes nothing: importing what
    it needs takes far longer. Returns its status, and what it says on standard error.
    """

    def mistaken(*arguments: str) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            sys.exit(main([*arguments]))
        said, code = capsys.readouterr(), ended.value.code
        assert not said.out
        if isinstance(code, str):  # which Python would print
            return 1, said.err + code
        return code, said.err

    return mistaken


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--model", "vgg"], 1, "there is no network 'vgg'; there are alexnet"),
        (["--model", "alexnet", "--device", "abacus"], 1, "there is no device 'abacus'"),
        (["--model", "alexnet", "--stores", "p4"], 2, "there is no store 'p4'; there are p3"),
        (["--model", "mine.json"], 1, "there is no file 'mine.json'"),
        (["--model", "alexnet", "--hosts", "0"], 2, "allowed are whole numbers of 1 or more, sep"),
        (["--model", "alexnet", "--servers", "2,4"], 2, "allowed is a whole number of 1 or more"),
        (["--model", "alexnet", "--latency", "-1"], 2, "allowed is a number of 0 or more"),
        (["--model", "alexnet", "--stragglers", "3"], 2, "found '3', allowed is a whole number of"),
        (["--trace", "."], 1, "has no trace"),
        ([], 2, "one of the arguments --model --trace --profile is required"),
    ],
)
def test_mistakes_are_told(arguments, status, said, mistaken):
    code, errors = mistaken(*arguments)
    assert code == status
    assert said in errors


def test_a_mistake_is_told_by_the_command(tmp_path):
    ended = run("--model", "vgg", directory=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "there is no network 'vgg'; there are alexnet" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_speeds_of_another_host_come_from_a_file(tmp_path):
    file = tmp_path / "speeds.json"
    Speeds(add=1e-9, codecs={"qsgd": {"encode": 1e-8}}).save(file)
    assert Speeds.load(file).costs("qsgd", updates=False).encode == 1e-8
    file.write_text('{"speed": 1}')
    with pytest.raises(SpeedsError, match="has 'speed'; speeds are message"):
        Speeds.load(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "has no speeds"),
        ('["message"]', "has no speeds"),
        ('{"message": "fast"}', "has no speeds"),
        ('{"codecs": 1}', "has no speeds"),
        ('{"byte": -1}', "has -1; speeds are seconds, 0 or more"),
        ('{"codecs": {"qsgd": {"encode": NaN}}}', "has nan; speeds"),
    ],
)
def test_a_file_of_something_else_has_no_speeds(content, said, tmp_path):
    file = tmp_path / "speeds.json"
    file.write_text(content)
    with pytest.raises(SpeedsError, match=said):
        Speeds.load(file)


@pytest.mark.parametrize("change", ["", "[]", '{"layers": [{}]}', '{"layers": 3}'])
def test_a_file_of_something_else_has_no_network(change, tmp_path):
    file = tmp_path / "network.json"
    file.write_text(change)
    with pytest.raises(NetworkError, match="has no network"):
        load(str(file))


def test_a_network_is_parsed_once_as_long_as_its_file_stays(tmp_path: Path) -> None:
    file, network = tmp_path / "network.json", load("alexnet")
    network.save(file)
    before, its_digest = load(str(file)), digest(str(file))
    assert before == network
    assert load(str(file)) is before
    replace(network, name="another one").save(file)
    assert load(str(file)).name == "another one"
    assert digest(str(file)) != its_digest


@pytest.mark.parametrize("device", ["0", "-1", "nan", "inf"])
def test_no_device_takes_no_time_or_for_ever(device):
    with pytest.raises(NetworkError, match=f"there is no device '{device}'"):
        on(load("resnet50"), device)


def test_a_device_takes_what_its_weaker_side_allows():
    network = load("resnet50")
    assert on(network, "0.1").compute == pytest.approx(0.1)
    v100 = on(network, "v100")
    assert network.compute / v100.compute == pytest.approx(15.7e12 / 5.3e12)
    assert v100.device == "v100, by its 15.7 TFLOP/s and 900 GB/s"


def events(*passes: tuple) -> np.ndarray:
    """Of layers, in seconds: kind, number, begin, end."""
    found = np.zeros(len(passes), EVENT)
    for event, (kind, key, begin, end) in zip(found, passes):
        event["kind"], event["key"] = kind, key
        event["begin"], event["end"] = round(begin * 1e9), round(end * 1e9)
    return found


def traced(layers: tuple) -> JobTrace:
    """Two layers over four steps, of which one waits for its parameters in each step, and in one
    for something else, too; the other's are float16."""
    passes, exchanges = [], [(Kind.READY, key, 0.8, 0.8) for key in (0, 1)]
    for step in range(4):
        begin = 2.0 * step
        come = begin + 0.5
        start = come + (0.3 if step == 2 else 0.0)
        exchanges += [(Kind.DONE, 1, begin, begin), (Kind.DONE, 0, begin, come)]
        passes += [
            (Kind.FORWARD, 0, begin, start + 0.1),
            (Kind.FORWARD, 1, start + 0.1, start + 0.3),
            (Kind.BACKWARD, 1, start + 0.3, start + 0.6),
            (Kind.BACKWARD, 0, start + 0.6, start + 0.8),
        ]
    pushed = events(*exchanges)
    pushed["message"], pushed["round"] = Message.PUSH, 1
    recorded = np.append(events(*passes), pushed)
    worker = ProcessTrace("worker", 0, "here", 1, recorded, layers=layers)
    named = [
        ("conv0_weight", "float32", 30),
        ("dense0_weight", "float16", 100),
        ("conv0_running_mean", "float32", 7),  # which nobody pushes
    ]
    keys = {
        number: KeyInfo(number, f"{number} ({name})", dtype, elements, "", ())
        for number, (name, dtype, elements) in enumerate(named)
    }
    return JobTrace((worker,), keys)


def test_a_traced_jobs_layers_are_its_network(capsys):
    network = network_of(traced(("conv0_fwd", "dense0_fwd")), "a test", 16)
    assert [layer.elements for layer in network.layers] == [30, 50]
    assert [layer.forward for layer in network.layers] == pytest.approx([0.1, 0.2])
    assert [layer.backward for layer in network.layers] == pytest.approx([0.2, 0.3])
    assert "1 keys are of float16: of these" in capsys.readouterr().err


def test_a_key_that_no_layer_is_seen_to_need_is_sent_all_the_same(capsys):
    """Its name tells nothing, and it is pushed before any layer has ended."""
    job = traced(("conv0_fwd", "dense0_fwd"))
    keys = {
        **job.keys,
        2: KeyInfo(2, "2 (scale)", "float32", 1000, "", ()),
        3: KeyInfo(3, "'told to all'", "float32", 10**6, "broadcast", ()),
    }
    pushed = events((Kind.READY, 2, 0.0, 0.0), (Kind.READY, 3, 0.0, 0.0))
    pushed["message"], pushed["round"] = Message.PUSH, 1
    worker = replace(job.workers[0], events=np.append(pushed, job.workers[0].events))
    network = network_of(JobTrace((worker,), keys), "a test", 16)
    assert [layer.elements for layer in network.layers] == [1030, 50]
    assert "need 1 of 3 keys, which count as the first one's: 2 (scale)" in capsys.readouterr().err


def test_keys_of_two_stores_may_have_one_name():
    job = traced(("conv0_fwd", "dense0_fwd"))
    name = "'conv0_weight'"
    keys = {number: replace(key, name=name) for number, key in job.keys.items()}
    network = network_of(replace(job, keys=keys), "a test", 16)
    assert [list(layer.parameters) for layer in network.layers] == [[name, f"{name} #2"]]
    assert numbered(network) == ([[0, 1]], [30, 50])


def test_a_trace_without_training_has_no_network():
    job = traced(("conv0_fwd", "dense0_fwd"))
    recorded = job.workers[0].events
    worker = replace(job.workers[0], events=recorded[recorded["kind"] != Kind.READY])
    with pytest.raises(NetworkError, match="it takes a few steps of training"):
        network_of(JobTrace((worker,), job.keys), "a test", 16)


def test_a_trace_of_slim_dp_does_not_tell_what_a_step_takes():
    job = traced(("conv0_fwd", "dense0_fwd"))
    keys = {number: replace(key, method="slim_dp alpha=0.3") for number, key in job.keys.items()}
    with pytest.raises(NetworkError, match="a round is p steps of training"):
        network_of(replace(job, keys=keys), "a test", 16)


def test_a_trace_of_ec_dnn_does_not_tell_what_a_step_takes():
    job = traced(("conv0_fwd", "dense0_fwd"))
    keys = {**job.keys, 9: KeyInfo(9, "'ec_dnn 0 model 1'", "float32", 10, "broadcast", ())}
    with pytest.raises(NetworkError, match="exchanges models every tau steps"):
        network_of(replace(job, keys=keys), "a test", 16)


def test_a_straggler_s_own_time_is_not_that_of_communication(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the picture goes
    cluster = ["--hosts", "4", "--bandwidth", "1000", "--stragglers", "1,2"]
    main(["--model", "resnet50", *cluster, "--stores", "p3"])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if " p3 " in f" {line} "]
    assert re.search(r" (98|99|100) % +compute", row), row


@pytest.mark.parametrize("count", [4, 3])
def test_a_layer_that_a_step_calls_several_times_takes_as_long_as_all_of_them(count):
    """As a cell of a recurrent network is, or every layer on two devices. The last step is not
    recorded where no other one has begun."""
    once = traced(("conv0_fwd", "dense0_fwd"))
    (worker,) = once.workers
    steps = events(*((Kind.STEP, 0, 4 * step, 4 * step + 4) for step in range(count)))
    recorded = worker.events.copy()
    later = recorded["begin"] // round(2e9) * round(2e9)  # a step in four seconds, not two
    for name in ("begin", "end"):
        recorded[name] += later
    again = recorded[recorded["kind"] != Kind.READY].copy()
    for name in ("begin", "end"):
        again[name] += round(2e9)
    job = JobTrace((replace(worker, events=np.concatenate([recorded, again, steps])),), once.keys)
    network = network_of(job, "a test", 16)
    assert [layer.forward for layer in network.layers] == pytest.approx([0.2, 0.4])
    assert [layer.backward for layer in network.layers] == pytest.approx([0.4, 0.6])


def test_a_card_says_nothing_of_a_network_that_was_timed_elsewhere():
    network = network_of(traced(("conv0_fwd", "dense0_fwd")), "a test", 16)
    assert on(network, "0.1").compute == pytest.approx(0.1)
    words = r"of a Quadro P4000.*those of the traced job are of host here"
    with pytest.raises(NetworkError, match=words):
        on(network, "v100")


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (["--stores", "p4"], "there is no store 'p4'"),
        (["--tau", "100"], "argument --tau: only with ec_dnn among --stores"),
        (["--stores", "p3", "--examples", "9"], "argument --examples: only with ec_dnn among"),
        (["--save-speeds", "train.py/mine.json"], "train.py"),
        (["-o", "train.py/mine.svg"], "train.py"),
        (["--speeds", "none.json"], "none.json"),
        (["--device", "v100"], "those of the script are of this host"),
        (["--device", "abacus"], "there is no device 'abacus'"),
    ],
)
def test_a_mistake_is_told_before_a_script_has_run(mistake, said, mistaken, tmp_path):
    (tmp_path / "train.py").write_text("open('has_run', 'w')")
    status, errors = mistaken(*mistake, "--profile", "train.py")
    assert status > 0
    assert said in errors
    assert not (tmp_path / "has_run").exists()


def test_a_mistake_is_told_before_the_command_has_run_a_script(tmp_path):
    (tmp_path / "train.py").write_text("open('has_run', 'w')")
    ended = run("--device", "v100", "--profile", "train.py", directory=tmp_path)
    assert ended.returncode > 0
    assert "those of the script are of this host" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "has_run").exists()


def test_a_command_that_is_told_to_end_ends_its_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, pathlib, time\n"
        "pathlib.Path('running').write_text(str(os.getpid()))\n"
        "pathlib.Path('running').rename('pid')\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, str(RUNNER), "predict", "--profile", "train.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as predict:
        try:
            await_file(tmp_path / "pid")
            predict.terminate()
            _, errors = predict.communicate(timeout=90)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(predict.pid, signal.SIGKILL)  # the launcher's, too
    assert predict.returncode == 1
    assert "train.py ended with status" in errors
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_half_a_straggler_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--model", "alexnet", "--stragglers", "1.9,2"])
    assert "found '1.9,2', allowed is a whole number of workers, a comma" in capsys.readouterr().err


def test_a_trace_without_layers_says_why():
    job = traced(())
    bare = ProcessTrace("worker", 0, "here", 1, job.workers[0].events[:0])
    killed = job.workers[0]
    for worker in (bare, killed):
        with pytest.raises(NetworkError, match="recorded of networks of Gluon's blocks"):
            network_of(JobTrace((worker,), job.keys), "a test", 16)


def test_a_trace_of_servers_alone_has_no_network():
    server = ProcessTrace("server", 0, "here", 1, events())
    with pytest.raises(NetworkError, match="has no worker"):
        network_of(JobTrace((server,), {}), "a test", 16)


def test_a_picture_of_an_unknown_kind_is_refused_before_anything_is_predicted(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--model", "alexnet", "-o", "picture.txt"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert "found 'picture.txt', allowed are names that end with .svg, .png or .pdf" in said.err
    assert not said.out


def test_the_best_store_is_the_first_of_those_within_a_per_cent_of_the_fastest():
    found = [Row(1.0, 4, name, seconds, 1.0, 1.0, "wire")
             for name, seconds in (("a", 1.0), ("b", 0.992), ("c", 0.985))]
    assert [row.store for row in best(found)] == ["b"]
