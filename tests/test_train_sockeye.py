"""The script that trains a translation model, run as a user runs it, and read by what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from cluster import LIMIT, P3_SERVER, STOCK_SERVER, Cluster

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples" / "train_sockeye.py"
# A network and a text that take a second.
TINY = ["--model-options", '{"embedding": 16, "hidden": 16}', "--text-scale", 0.01, "--beam", 2,
        "--bleu-sentences", 4, "--batch-size", 128, "--lr", 0.01, "--examples", 1]


def run_to(status: int, *flags: object) -> subprocess.CompletedProcess:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(SCRIPT), *map(str, flags)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=2 * LIMIT,
                            env=environment)
    assert result.returncode == status, result.stderr
    return result


def parameters(path: Path) -> dict[str, np.ndarray]:
    return {name: array.asnumpy() for name, array in mx.nd.load(str(path)).items()}


def assert_same_bits(found: Path, expected: Path) -> None:
    ours, theirs = parameters(found), parameters(expected)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, name)


@pytest.mark.parametrize("flags", [[], ["--sparse-embedding"]], ids=["dense", "sparse"])
def test_workers_end_with_the_same_parameters_as_with_the_stock_store(
    cluster: Cluster, tmp_path: Path, flags: list[str]
) -> None:
    for store, server in (("p3", P3_SERVER), ("dist_sync", STOCK_SERVER)):
        job = cluster.run(SCRIPT, *TINY, *flags, "--epochs", 1, "--kv-store", store, "--save",
                          tmp_path / f"{store}-{{rank}}", server=server)
        output = "".join(worker.output for worker in job.workers)
        assert output.count("held-out BLEU") == 1  # rank 0's
        assert re.search(r"held-out BLEU \d+\.\d\d, of copying the source \d+\.\d\d", output)
        assert_same_bits(tmp_path / f"{store}-1", tmp_path / f"{store}-0")
    assert_same_bits(tmp_path / "p3-0", tmp_path / "dist_sync-0")


def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(tmp_path: Path) -> None:
    flags = [*TINY, "--kv-store", "local", "--lr-schedule", "step", "--lr-steps", 1,
             "--checkpoint-dir"]
    whole = run_to(0, *flags, tmp_path / "whole", "--epochs", 2, "--save", tmp_path / "a").stdout
    run_to(0, *flags, tmp_path / "parts", "--epochs", 1)
    resumed = run_to(0, *flags, tmp_path / "parts", "--epochs", 2, "--resume", "--save",
                     tmp_path / "b").stdout
    assert "after epoch 1" in resumed
    assert "afresh" not in resumed
    assert_same_bits(tmp_path / "b", tmp_path / "a")
    losses = [re.findall(r"^ +2  .*", output, re.MULTILINE)[-1].split()[:4]
              for output in (whole, resumed)]
    assert losses[0] == losses[1]
    assert float(losses[0][3]) > 1  # a perplexity
    # Another text has another vocabulary.
    errors = run_to(1, *flags, tmp_path / "parts", "--resume", "--languages", "en,fr").stderr
    assert re.search(r"epoch-0002/vocabulary\.target:\d+: the vocabulary is another model's", errors)


def write(directory: Path, source: str, target: str) -> list[object]:
    (directory / "source").write_text(source, encoding="utf-8")
    (directory / "target").write_text(target, encoding="utf-8")
    return ["--source", directory / "source", "--target", directory / "target"]


def test_two_files_are_learned_and_training_stops_early(tmp_path: Path) -> None:
    words = ["eins", "zwei", "drei"]
    random = np.random.RandomState(0)
    lines = [" ".join(random.choice(words, random.randint(1, 4))) for _ in range(300)]
    for word, number in zip(words, "123"):
        target = [line.replace(word, number) for line in lines]
    files = write(tmp_path, "\n".join(lines), "\n".join(target))
    output = run_to(0, *files, *TINY[:2], "--devices", "cpu:2", "--batch-size", 60, "--epochs", 6,
                    "--patience", 1, "--lr", 1.0, "--clip-gradient", 100).stdout
    assert "no better held-out perplexity in 1 epochs" in output
    assert "285 sentences" in output


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--source", "{}/text"], "--source and --target belong together"),
        (["--source", "{}/text", "--target", "{}/longer"], "longer:3: .*text has no such line"),
        (["--source", "{}/text", "--target", "{}/text", "--max-length", 2],
         r"text:1: the sentence has \d words, more than the 2"),
        (["--languages", "en"], "--languages en: it must be two"),
        (["--languages", "en,xx"], "Babel knows no locale 'xx'"),
        (["--model", "huge"], "unknown configuration 'huge'"),
        (["--model-options", '{"hiden": 3}'], "unexpected keyword argument 'hiden'"),
        (["--beam", 0], "beam is 0; it must be at least 1"),
        (["--kv-store", "dist_snyc"], "--kv-store dist_snyc is unknown"),
    ],
)
def test_wrong_flags_get_a_plain_error(tmp_path: Path, flags: list[object], message: str) -> None:
    (tmp_path / "text").write_text("one two\nthree\n")
    (tmp_path / "longer").write_text("one two\nthree\nfour\n")
    errors = run_to(1, *(str(flag).replace("{}", str(tmp_path)) for flag in flags)).stderr
    assert re.search(message, errors)
    assert "Traceback" not in errors
