"""Trainings whose results are kept in a file, and what tables say of them.

The file gets a line after each training; what stands in it is not trained again, so that a
benchmark can be ended and called again at any time, and several can share the work.
"""
from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Dict, Iterable, List, Type, TypeVar

import numpy as np
from scipy import stats

Training = TypeVar("Training")  # a dataclass with run(), which returns what is found, by name


def complete(file: Path, kind: Type[Training], wanted: Iterable[Training]) -> Dict[Training, Any]:
    """What all trainings in the file have found, once it has the wanted ones; it may not exist."""
    for training in wanted:
        if training not in _read(file, kind):
            _run(training, file)
    return _read(file, kind)


def _read(file: Path, kind: Any) -> Dict[Any, Any]:
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    # A training is written with all of its fields: one that has others was of an older benchmark,
    # and defaults of now do not say what it was.
    names = {field.name for field in fields(kind)}
    return {
        kind(**row["training"]): row["found"]
        for row in rows if row["training"].keys() == names
    }


def _run(training: Any, file: Path) -> None:
    begun = time.process_time()
    found = training.run()
    with file.open("a") as lines:
        lines.write(json.dumps({"training": asdict(training), "found": found}) + "\n")
    used = time.process_time() - begun
    figures = {name: round(value, 4) for name, value in found.items() if isinstance(value, float)}
    print(f"{used:.1f} s of CPU: {training}: {figures}", file=sys.stderr, flush=True)


def make_parser(doc: str, epochs: int, methods: Iterable[str]) -> argparse.ArgumentParser:
    """What benchmarks of trainings by methods are asked for, with these defaults; not how many
    workers: some have one number, others several."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="JSON lines, one a training")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--methods", nargs="+", default=list(methods), choices=list(methods))
    return parser


def command(script: str) -> str:
    """By which a benchmark's tables are made."""
    return shlex.join(["python", f"benchmarks/{script}", *sys.argv[1:]])


def interval(values: np.ndarray, sign: str = "") -> str:
    """The mean, and half the length of its 95 % interval (t distribution)."""
    return f"{np.mean(values):{sign}.2f} ± {_half_interval(values):.2f}"


def _half_interval(values: np.ndarray) -> float:
    if len(values) < 2:
        return math.nan
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def shown(differences: Dict[str, np.ndarray]) -> str:
    """Which of some differences, an array of seeds each, their 95 % intervals tell from zero."""
    above: List[str] = []
    below: List[str] = []
    for name, values in differences.items():
        mean, half = float(np.mean(values)), _half_interval(values)
        if abs(mean) > half:
            (above if mean > 0 else below).append(name)
    told = [f"Above zero by its interval: {'; '.join(above)}."] * bool(above)
    told += [f"Below zero by its interval: {'; '.join(below)}."] * bool(below)
    if len(above) + len(below) < len(differences):
        told.append(f"Not told from zero: {'the others' if told else 'all'}.")
    return " ".join(told)


def compared(what: str, differences: Dict[str, np.ndarray]) -> str:
    """What one thing adds to another, an array of seeds in each case, and where that is told from
    zero."""
    found = "; ".join(f"{name} {interval(values, '+')}" for name, values in differences.items())
    return f"{what}: {found}. {shown(differences)}"
