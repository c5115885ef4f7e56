"""How the commands of the documents are run by tests: what stands for each, in the shell.

They run in a directory that has train.py, hosts and links to the repository's own directories.
"""
from __future__ import annotations

import re
import shlex
import sys
from typing import NamedTuple

from .documents import ROOT

# What is added to scripts that take long, under --all. Without --all they only read their flags.
QUICK = {
    "examples/train_own.py": "--epochs 1",
    "examples/train_image.py": "--epochs 1",
    "examples/train_module.py": "--epochs 1",
    "examples/train_ec_dnn.py": "--epochs 1 --tau 5",
    "examples/train_sockeye.py": """--model-options '{"embedding": 16, "hidden": 16}' --beam 2 """
    "--text-scale 0.01 --bleu-sentences 4 --batch-size 128 --examples 1 --epochs 1",
    "benchmarks/codecs.py": "--elements 65536 --repeats 1",
    "benchmarks/compression_accuracy.py": "--epochs 1 --workers 2 --seeds 1 --methods terngrad",
    "benchmarks/dgc_ablation.py": "--epochs 1 --workers 2 --seeds 1 --methods '10 %'",
    "benchmarks/terngrad_ablation.py": "--epochs 5 --workers 2 --seeds 1 --methods 'c = 1'",
    "benchmarks/terngrad_tables.py": "--epochs 1 --seeds 1 --methods 'Adam, floats'",
    "benchmarks/beyond.py": "--epochs 3 --workers 2 --seeds 1 --methods floats",
    "benchmarks/layer_cost.py": "--repeats 1",
    "benchmarks/memory.py": "--network googlenet",
    "benchmarks/startup.py": "--workers 1 --servers 1 --repeats 1",
    "benchmarks/trace_cost.py": "--repeats 1",
    "benchmarks/secure_cost.py": "--repeats 1 --steps 3",
    "benchmarks/small_keys.py": "--repeats 1 --steps 3",
    "benchmarks/unshaped.py": "--network googlenet --repeats 1 --steps 1",
    "benchmarks/slim_accuracy.py": "--epochs 1 --workers 2 --seeds 1 --methods plain",
    # Which needs perf, and a kernel that lets it count.
    "benchmarks/where_time_goes.py": "--help",
    # Whose every run takes the whole time; tests/benchmarks runs what it is made of.
    "benchmarks/ec_dnn_accuracy.py": "--help",
    "benchmarks/ec_dnn_cost.py": "--workers 2 --tau 2 --rounds 2",
}

_EXTRAS = 'import importlib.metadata as m, sys; sys.exit(not {} <= ' \
    'set(m.metadata("kvstore_ext").get_all("Provides-Extra")))'
_VARIABLES = r"(?:\w+=(?:'[^']*'|\S*) )*"
_LAUNCHER = rf"({_VARIABLES}(?:kvstore-launch|python tools/launch\.py)) "
_SCRIPT = re.compile(
    rf"(?:{_LAUNCHER}.*?|{_VARIABLES})python ((?:examples|benchmarks)/\w+\.py.*)")


class Run(NamedTuple):
    """What is run for a command; empty where something else says whether it works."""

    always: str
    all: str  # by --all, in place of it


def run_for(command: str) -> Run | None:
    """None where no rule fits."""
    for rule in (_as_it_is, _make, _pip, _script, _launch, _check, _completion, _replay):
        found = rule(command)
        if found:
            return found
    return None


def dry_run(command: str) -> str:
    """What prints the job that a command of the launcher would start; nothing for others."""
    launches = re.match(_LAUNCHER, command) and not command.endswith(" --help")
    return re.sub(f"^{_LAUNCHER}", r"\1 --dry-run ", command) if launches else ""


def script_words(command: str) -> list[str]:
    """The words after python, where the command runs an example or a benchmark."""
    found = _SCRIPT.fullmatch(command)
    return shlex.split(found[2]) if found else []


def _as_it_is(command: str) -> Run | None:
    runner = r"kvstore-ext (?:--\w+ \S+ )*train\.py.*"
    short = command.endswith((" --help", " --list"))
    return Run(command, command) if short or re.fullmatch(runner, command) else None


def _make(command: str) -> Run | None:
    # What a target does takes minutes, or is what is running now: make says what it would do.
    found = re.fullmatch(r"(?:rm -f (docs/figures/[^\s;]+); )?make (.+)", command)
    if command == "make demo":  # the first thing that a user runs
        make = f"make -C {ROOT} ENVIRONMENT={sys.prefix}"
        return Run(f"make -C {ROOT} -n demo", f"{make} demo")
    if not found:
        return None
    removed = f"test -f {ROOT}/{found[1]} && " if found[1] else ""
    return Run(*[f"{removed}make -C {ROOT} -n {found[2]}"] * 2)


def _pip(command: str) -> Run | None:
    # tests/install installs; here the extras have to be there.
    found = re.fullmatch(r"pip install '\.\[([\w,]+)\]'", command)
    if not found:
        return None
    names = "{" + ", ".join(f'"{name}"' for name in found[1].split(",")) + "}"
    return Run(*[f"python -c '{_EXTRAS.format(names)}'"] * 2)


def _script(command: str) -> Run | None:
    words = script_words(command)
    if not words or words[0] not in QUICK:
        return None
    quick = f"{_small(command)} {QUICK[words[0]]}"
    if "--checkpoint-dir" not in words:
        return Run("", quick)
    directory = words[words.index("--checkpoint-dir") + 1]
    first = f"rm -rf {directory} && {quick.replace(' --resume', '')}"
    # It goes on from what the same command without --resume has written.
    return Run("", f"{first} && {quick} --epochs 2" if "--resume" in words else first)


def _launch(command: str) -> Run | None:
    """A job of train.py. Every line of the launcher is also asked what it would start."""
    runner = r"(?:python |kvstore-ext (--join ))"
    found = re.fullmatch(rf"{_LAUNCHER}(.*?){runner}(train\.py.*)", command)
    if not found:
        return None
    start, options, join, script = found.groups()
    if re.search(r"(^| )(-H|--launcher|--dry-run)\b", options):
        return Run("", "")  # tests/launch has sshd, mpirun and srun
    words = ["kvstore-ext", *re.findall(r"--replace \S+", options), (join or "") + script]
    alone = start[:start.rfind("kvstore-launch")] + " ".join(words)
    return Run(alone, _small(command))


def _check(command: str) -> Run | None:
    """Only reads the command line without --all; the check's status is 1 where this host is not
    fit."""
    reader = re.match("kvstore-ext (trace|report|predict) ", command)
    if reader:
        # Status 2 is of options that there are not, 1 of a trace or speeds that are not here.
        missing = " --speeds missing.json" if reader[1] == "predict" else ""
        return Run(*[f"{command}{missing}; test $? -eq 1"] * 2)
    if command.startswith("python tools/report_screenshots.py "):
        return Run(*["python tools/report_screenshots.py --help"] * 2)
    found = re.fullmatch(r"kvstore-ext --check( -H hosts)?", command)
    if not found:
        return None
    asked = f"{command} --help"  # tests/check has hosts
    return Run(asked, asked if found[1] else f"{command}; test $? -le 1")


def _replay(command: str) -> Run | None:
    # Clusters need root and minutes; tests/benchmarks has them. Here a run says what it would do.
    if re.match(r"(\w+='\S+ \S+' )?python -m benchmarks\.replay run ", command):
        return Run(*[command.replace("mine.json ", "alexnet ") + " --dry-run"] * 2)
    if re.fullmatch(r"python -m benchmarks\.figures \S+ --data-dir data", command):
        return Run(*[f"{command} 2>&1 | grep 'error: data set cifar10 needs'"] * 2)
    if command == "python -m benchmarks.figures terngrad-scaling":
        return Run(*[f"{command} --dry-run"] * 2)  # tests/benchmarks draws a part of it
    fits = command.startswith("python -m benchmarks.replay profile ") or re.fullmatch(
        r"python -m benchmarks\.(shares|figures (--list|--dry-run .*))", command)
    return Run(command, command) if fits else None


def _completion(command: str) -> Run | None:
    return Run(command, command) if "$(register-python-argcomplete" in command else None


def _small(command: str) -> str:
    return re.sub(r" -n \d+(?: -s \d+)?", " -n 2 -s 1", command)
