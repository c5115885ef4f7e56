"""The script that trains a translation model, run as a user runs it, and read by what it prints."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import cldr_text
import numpy as np
import pytest
import translation

from tests.support.cluster import P3_SERVER, STOCK_SERVER, Cluster
from tests.support.paths import EXAMPLES
from tests.support.processes import LIMIT, Ended, run_python
from tests.support.results import assert_same_bits, parameters_of

SCRIPT = EXAMPLES / "train_sockeye.py"
# A network and a text that take a second.
TINY = ["--model-options", '{"embedding": 16, "hidden": 16}', "--text-scale", 0.01, "--beam", 2,
        "--bleu-sentences", 4, "--batch-size", 128, "--lr", 0.01, "--examples", 1]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """Flags for two files of some CLDR phrases, which are read faster than they are made."""
    training, _ = cldr_text.parallel_text("en", "de", scale=0.01)
    sides = ["\n".join(side) for side in zip(*training[:400])]
    return write(tmp_path_factory.mktemp("text"), *sides)


def write(directory: Path, source: str, target: str) -> list[object]:
    (directory / "source").write_text(source, encoding="utf-8")
    (directory / "target").write_text(target, encoding="utf-8")
    return ["--source", directory / "source", "--target", directory / "target"]


def run_to(status: int, *flags: object) -> Ended:
    return run_python(SCRIPT, *flags, status=status, seconds=2 * LIMIT, fork=True)


def assert_same_parameters(found: Path, expected: Path) -> None:
    assert_same_bits(parameters_of(found), parameters_of(expected))


def run_cluster(cluster: Cluster, store: str, saved: Path, *flags: object) -> None:
    """Trains with two workers; asserts that both end with the same parameters."""
    server = STOCK_SERVER if store == "dist_sync" else P3_SERVER
    job = cluster.run(SCRIPT, *TINY, "--epochs", 1, "--kv-store", store, *flags, "--save",
                      f"{saved}-{{rank}}", server=server)
    output = "".join(worker.output for worker in job.workers)
    # Rank 0's alone.
    found = re.findall(r"held-out BLEU \d+\.\d\d, of copying the source \d+\.\d\d", output)
    assert len(found) == 1
    assert_same_parameters(Path(f"{saved}-1"), Path(f"{saved}-0"))


def test_workers_end_with_the_parameters_of_the_stock_store(
    cluster: Cluster, tmp_path: Path
) -> None:
    for store in ("p3", "dist_sync"):
        run_cluster(cluster, store, tmp_path / store)
    assert_same_parameters(tmp_path / "p3-0", tmp_path / "dist_sync-0")


def test_sparse_gradients_train_two_workers_as_one(
    cluster: Cluster, tmp_path: Path, text: list[object]
) -> None:
    # MXNet's own dist_sync dies of a dense weight with a sparse gradient.
    flags = [*text, "--sparse-embedding", "--optimizer", "sgd", "--lr", 0.1, "--model-options",
             '{"embedding": 16, "hidden": 16, "embedding_dropout": 0, "hidden_dropout": 0}']
    run_cluster(cluster, "p3", tmp_path / "p3", *flags)
    run_to(0, *TINY, "--epochs", 1, "--kv-store", "local", *flags, "--save", tmp_path / "alone")
    alone = parameters_of(tmp_path / "alone")
    for name, value in parameters_of(tmp_path / "p3-0").items():
        # The sums of the gradients are rounded in another order.
        np.testing.assert_allclose(value, alone[name], rtol=1e-3, atol=1e-4, err_msg=name)


RESUMABLE = [*TINY, "--kv-store", "local", "--lr-schedule", "step", "--lr-steps", 1,
             "--checkpoint-dir"]


class Resumed(NamedTuple):
    """What a run of two epochs has printed, and one that went on after its first; `whole` and
    `parts` in the directory are their parameters, `checkpoints` is of the second."""

    whole: str
    parts: str
    directory: Path


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory, text: list[object]) -> Resumed:
    directory = tmp_path_factory.mktemp("resumed")
    flags = [*text, *RESUMABLE]
    whole = run_to(0, *flags, directory / "uninterrupted", "--epochs", 2, "--save",
                   directory / "whole").stdout
    run_to(0, *flags, directory / "checkpoints", "--epochs", 1)
    parts = run_to(0, *flags, directory / "checkpoints", "--epochs", 2, "--resume", "--save",
                   directory / "parts").stdout
    return Resumed(whole, parts, directory)


def test_a_run_goes_on_from_a_snapshot_with_the_bits_of_an_uninterrupted_one(
    tmp_path: Path, text: list[object]
) -> None:
    def train(name: str, epochs: int, snapshots: str) -> str:
        flags = [*text, *TINY, "--kv-store", "p3", "--lr-schedule", "step", "--lr-steps", 1]
        snapshot = ["--snapshot", tmp_path / snapshots, "--snapshot-every", 2]
        return run_to(0, *flags, *snapshot, "--epochs", epochs, "--save", tmp_path / name).stdout

    train("whole", 2, "of whole")
    train("first", 1, "of parts")
    output = train("last", 2, "of parts")
    assert "goes on from the snapshot of step 2 in" in output
    assert re.findall(r"^ +([12])  ", output, re.MULTILINE) == ["1", "2"]
    assert_same_parameters(tmp_path / "last", tmp_path / "whole")


def test_a_resumed_run_says_where_it_goes_on(resumed: Resumed) -> None:
    assert "after epoch 1" in resumed.parts
    assert "afresh" not in resumed.parts


def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(resumed: Resumed) -> None:
    assert_same_parameters(resumed.directory / "parts", resumed.directory / "whole")


def test_a_resumed_run_prints_the_losses_of_an_uninterrupted_one(resumed: Resumed) -> None:
    losses = [re.findall(r"^ +2  .*", output, re.MULTILINE)[-1].split()[:4]
              for output in (resumed.whole, resumed.parts)]
    assert losses[0] == losses[1]
    assert float(losses[0][3]) > 1  # a perplexity


def test_a_run_of_another_vocabulary_is_not_resumed(resumed: Resumed, tmp_path: Path) -> None:
    others = write(tmp_path, "one two\nthree", "eins zwei\ndrei")
    checkpoints = resumed.directory / "checkpoints"
    errors = run_to(1, *RESUMABLE, checkpoints, "--resume", *others).stderr
    assert re.search(r"epoch-0002/vocabulary\.source:\d+: the vocabulary is another", errors)


@pytest.fixture(scope="module")
def without_progress(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is printed by a training on two files that learns nothing, and whose recipe has it stop
    after two epochs without progress."""
    directory = tmp_path_factory.mktemp("without_progress")
    random = np.random.RandomState(0)
    lines = [" ".join(random.choice(["eins", "zwei"], random.randint(1, 4))) for _ in range(300)]
    files = write(directory, "\n".join(lines), "\n".join(lines).replace("eins", "1"))
    (directory / "recipe.json").write_text(
        '{"patience": 2, "epochs": 6, "lr_schedule": "constant", "devices": "cpu:2", "workers": 1}')
    return run_to(0, *files, *TINY, "--recipe", directory / "recipe.json", "--lr", 0).stdout


def test_all_lines_of_two_files_but_those_held_out_are_trained_on(without_progress: str) -> None:
    assert "285 sentences" in without_progress


def test_a_recipe_has_training_stop_early(without_progress: str) -> None:
    assert "no better held-out perplexity in 2 epochs" in without_progress
    assert "best epoch 1" in without_progress


def test_a_sentence_that_is_too_long_gets_a_plain_error(tmp_path: Path) -> None:
    files = write(tmp_path, "three\none two\n", "one\ntwo\n")
    errors = run_to(1, *files, "--max-length", 6).stderr
    assert errors == f"{files[1]}:2: the sentence has 7 words, more than the 6 of --max-length\n"


def test_what_does_not_fit_can_be_left_out(tmp_path: Path) -> None:
    lines = "\n".join(["one two", "", "three", *["one"] * 30])
    files = write(tmp_path, lines, lines.replace("three", "one two three four five"))
    few = ["--epochs", 1, "--max-length", 9, "--drop-unfit"]
    said = run_to(0, *files, *TINY, *few).stdout
    assert "left out 2 of 33 pairs: a side is empty, or has more than 9 words" in said
    nothing = run_to(1, *files, "--max-length", 1, "--drop-unfit").stderr
    assert nothing == "--drop-unfit leaves 0 pairs to train on and 0 held out\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"source": "text"}, "--source and --target belong together: give both or neither"),
        ({"held_out_target": "text"}, "--held-out-source and --held-out-target belong together"),
        ({"held_out_source": "a", "held_out_target": "b"}, "--held-out-source needs --source"),
        ({"languages": "en"}, "--languages en: it must be two, such as en,de"),
        ({"languages": "en,xx"}, "Babel knows no locale 'xx'"),
    ],
)
def test_texts_that_do_not_fit_together_are_named(flags: dict[str, str], message: str) -> None:
    files = dict.fromkeys(("source", "target", "held_out_source", "held_out_target"))
    args = Namespace(**{"languages": "en,de", "text_scale": 0.01, **files, **flags})
    with pytest.raises(ValueError, match=message):
        translation.load_text(args)


def test_the_last_lines_of_a_file_are_held_out(tmp_path: Path) -> None:
    write(tmp_path, "\n".join(map(str, range(40))), "\n".join(map(str, range(40))))
    args = Namespace(source=str(tmp_path / "source"), target=str(tmp_path / "target"),
                     held_out_source=None, held_out_target=None, drop_unfit=False)
    training, held_out, places, first_line = translation.load_text(args)
    assert training == [(str(i), str(i)) for i in range(38)]
    assert held_out == [("38", "38"), ("39", "39")]
    assert places == [args.source, args.target] * 2
    assert first_line == 39
