"""Trainings whose results are kept in a file.

The file gets a line after each training; what stands in it is not trained again, so that a
benchmark can be ended and called again at any time, and several can share the work.
"""
from __future__ import annotations

import argparse
import shlex
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Dict, Iterable, Type, TypeVar

from result_lines import append, read

Training = TypeVar("Training")  # a dataclass with run(), which returns what is found, by name


def complete(file: Path, kind: Type[Training], wanted: Iterable[Training]) -> Dict[Training, Any]:
    """What all trainings in the file have found, once it has the wanted ones; it may not exist."""
    for training in wanted:
        if training not in _read(file, kind):
            _run(training, file)
    return _read(file, kind)


def _read(file: Path, kind: Any) -> Dict[Any, Any]:
    # A training is written with all of its fields: one that has others was of an older benchmark,
    # and defaults of now do not say what it was.
    names = {field.name for field in fields(kind)}
    return {
        kind(**row["training"]): row["found"]
        for row in read(file) if row["training"].keys() == names
    }


def _run(training: Any, file: Path) -> None:
    begun = time.process_time()
    found = training.run()
    append(file, {"training": asdict(training), "found": found})
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
