"""How the commands of the documents are run by tests: what stands for each, in the shell.

They run in a directory that has train.py, hosts and links to the repository's own directories.
"""
from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from .documents import ROOT

# Of scripts that take long: what replaces a part of the command under --all. Without --all they
# only read their flags.
QUICK = {
    "examples/train_image.py": r"\g<0> --epochs 1",
    "examples/train_module.py": r"\g<0> --epochs 1",
    "examples/train_own.py": r"\g<0> --epochs 1",
    "examples/train_ec_dnn.py": r"\g<0> --epochs 1 --tau 5",
    "examples/train_sockeye.py": r"""\g<0> --model-options '{"embedding": 16, "hidden": 16}' """
    "--text-scale 0.01 --beam 2 --bleu-sentences 4 --batch-size 128 --examples 1 --epochs 1",
    "benchmarks/codecs.py": r"\g<0> --elements 65536 --repeats 1",
    "benchmarks/compression_accuracy.py":
        r"\g<0> --epochs 1 --workers 2 --seeds 1 --methods terngrad",
    "benchmarks/slim_accuracy.py": r"\g<0> --epochs 1 --workers 2 --seeds 1 --methods all",
    "benchmarks/slim_communication.py vgg16":
        "benchmarks/slim_communication.py googlenet --rounds 1 --repeat 1 --methods plain",
    # Of which every run takes the whole time; tests/benchmarks runs what it is made of.
    "benchmarks/ec_dnn_accuracy.py": r"\g<0> --help",
    "benchmarks/ec_dnn_cost.py": r"\g<0> --workers 2 --tau 2 --rounds 1",
}

_EXTRAS = 'import importlib.metadata as m; assert {{*"{}".split(",")}} <= {{' \
    '*m.metadata("kvstore_ext").get_all("Provides-Extra")}}'
_LAUNCHER = r"(?:kvstore-launch|python tools/launch\.py)"
_VARIABLES = r"(?:\w+=(?:'[^']*'|\S*) )*"
_SCRIPT = re.compile(
    rf"(?:{_VARIABLES}{_LAUNCHER} .*?|{_VARIABLES})python ((?:examples|benchmarks)/\w+\.py.*)")


class Run(NamedTuple):
    """What is run for a command; empty where something else says whether it works."""

    always: str
    all: str  # by --all, in place of it


def run_for(command: str) -> Run | None:
    """None where no rule fits."""
    for rule in (_help, _make, _pip, _script, _launch, _check, _runner, _completion):
        found = rule(command)
        if found:
            return found
    return None


def launcher_arguments(command: str) -> list[str]:
    """Those of kvstore-launch, where the command begins with that."""
    found = re.match(rf"{_VARIABLES}{_LAUNCHER} (.*)", command)
    return shlex.split(found[1]) if found else []


def script_words(command: str) -> list[str]:
    """The words after python, where the command runs an example or a benchmark."""
    found = _SCRIPT.fullmatch(command)
    return shlex.split(found[1]) if found else []


def _help(command: str) -> Run | None:
    return Run(command, command) if command.endswith((" --help", " --list")) else None


def _make(command: str) -> Run | None:
    # What a target does takes minutes, or is what is running now: make says what it would do.
    found = re.fullmatch(r"make (.+)", command)
    return Run(*[f"make -C {ROOT} -n {found[1]}"] * 2) if found else None


def _pip(command: str) -> Run | None:
    # tests/install installs; here the extras have to be there.
    found = re.fullmatch(r"pip install '\.\[([\w,]+)\]'", command)
    return Run(*[f"python -c '{_EXTRAS.format(found[1])}'"] * 2) if found else None


def _script(command: str) -> Run | None:
    if not _SCRIPT.fullmatch(command):
        return None
    for slow, quick in QUICK.items():
        if slow in command:
            return Run("", re.sub(re.escape(slow), quick, _small(command)))
    return None


def _launch(command: str) -> Run | None:
    """A job of train.py."""
    found = re.fullmatch(rf"({_VARIABLES}){_LAUNCHER} (.*)python (train\.py.*)", command)
    if not found:
        return None
    variables, options, script = found.groups()
    if " -H " in f" {options}" or "--launcher" in options:
        return Run("", "")  # tests/launch has sshd, mpirun and srun; here the command line is read
    replaced = " ".join(re.findall(r"--replace \S+", options))
    return Run(f"{variables}kvstore-ext {replaced} {script}", _small(command))


def _check(command: str) -> Run | None:
    found = re.fullmatch(r"(?:python -m kvstore_ext|kvstore-ext) --check( -H hosts)?", command)
    # tests/check has hosts; here the command line is read.
    return Run(f"{command} --help", f"{command}{' --help' if found[1] else ''}") if found else None


def _runner(command: str) -> Run | None:
    fits = re.fullmatch(r"kvstore-ext (?:--\w+ \S+ )*train\.py.*", command)
    return Run(command, command) if fits else None


def _completion(command: str) -> Run | None:
    return Run(command, command) if "$(register-python-argcomplete" in command else None


def _small(command: str) -> str:
    return re.sub(r" -n \d+(?: -s \d+)?", " -n 2 -s 1", command)
