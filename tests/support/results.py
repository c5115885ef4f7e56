"""What workers leave for the tests: files of arrays by name, one a task and worker."""
from __future__ import annotations

from pathlib import Path

import mxnet as mx
import numpy as np

Arrays = dict  # name -> numpy.ndarray


def save(directory: str | Path, task: object, rank: int, found: Arrays) -> None:
    """What the worker of a rank has found."""
    np.savez(_file(directory, task, rank), **found)


def load(directory: str | Path, task: object, rank: int) -> Arrays:
    """What a worker has saved."""
    return dict(np.load(_file(directory, task, rank)))


def load_all(directory: str | Path, task: object, workers: int) -> list[Arrays]:
    """What all workers have saved, by rank."""
    return [load(directory, task, rank) for rank in range(workers)]


def agreed(directory: str | Path, task: object, workers: int) -> Arrays:
    """What all workers have saved; asserts that it is the same."""
    first, *others = load_all(directory, task, workers)
    for other in others:
        assert_same_bits(other, first, f"of {task}")
    return first


def assert_same_bits(found: Arrays, expected: Arrays, what: str = "") -> None:
    """Asserts that both have the same names, and the same numbers by each of them."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, f"{name} {what}")


def parameters_of(file: str | Path) -> Arrays:
    """Of a network that a script has saved by Gluon."""
    return {name: array.asnumpy() for name, array in mx.nd.load(str(file)).items()}


def _file(directory: str | Path, task: object, rank: int) -> str:
    return f"{directory}/{task}-{rank}.npz"
