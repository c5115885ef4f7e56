"""Which parameters are the core, over slices that lie on several servers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from kvstore_ext import _core
from kvstore_ext.slim_dp.core_selection import CoreKeeper, CoreSelector
from kvstore_ext.slim_dp.options import SlimDP

from tests.support.codec_checks import kernels

KERNELS = _core.kernels()
SERVERS = 3
Name = tuple[int, int]


class Slices:
    """In the place of a server's slices: snapshots that are complete, and the core that is set."""

    def __init__(self) -> None:
        self.snapshots: dict[Name, tuple[np.ndarray, np.ndarray | None]] = {}
        self.cores: dict[Name, np.ndarray] = {}

    def await_selection(self, store: int, round_: int, slices: int) -> _core.CoreSelection:
        assert slices == len(self.snapshots)
        return _core.CoreSelection(self.snapshots)

    def set_cores(self, selection: int, cores: dict[Name, _core.Subset]) -> None:
        self.cores = {name: core.mask() for name, core in cores.items()}


class Worker:
    """In the place of rank 0's lane: its servers answer at once. Keeps what they were asked."""

    def __init__(self, parameters: np.ndarray, updates: np.ndarray | None) -> None:
        self.servers = [Slices() for _ in range(SERVERS)]
        self.asked: list[dict[str, Any]] = []
        self._keepers = [CoreKeeper(server) for server in self.servers]  # type: ignore[arg-type]
        self._answers: list[tuple[int, bytes, bytes]] = []
        self._placed: dict[int, list[tuple[int, int, int, int]]] = {}
        bounds = np.linspace(0, parameters.size, 8).astype(int).tolist()
        for number, (begin, end) in enumerate(zip(bounds, bounds[1:])):
            key, index, server = number // 2, number % 2, number % SERVERS
            own = None if updates is None else updates[begin:end]
            self.servers[server].snapshots[key, index] = parameters[begin:end], own
            self._placed.setdefault(key, []).append((index, begin, end - begin, server))
        self.keys = list(self._placed)

    def slices(self, key: int) -> list[tuple[int, int, int, int]]:
        return self._placed[key]

    def ask(self, server: int, text: str, data: bytes) -> int:
        _, asked = json.loads(text)
        self.asked.append(asked)
        answer, more = self._keepers[server].answer(asked, data)
        self._answers.append((server, json.dumps(answer).encode(), more))
        return len(self._answers) - 1

    def await_answer(self, number: int, seconds: float) -> tuple[int, bytes, bytes]:
        return self._answers[number]

    def core(self) -> np.ndarray:
        return np.concatenate([
            self.servers[server].cores[key, index]
            for key in self.keys for index, _, _, server in self._placed[key]])


def choose(worker: Worker, size: int, c: float) -> np.ndarray:
    selector = CoreSelector(worker, 0, SlimDP(c=c))  # type: ignore[arg-type]
    selector._select(0, size, worker.keys)
    return worker.core()


def largest(parameters: np.ndarray, updates: np.ndarray | None, c: float, size: int) -> np.ndarray:
    """Equation 1, among equals the first ones."""
    significance = np.abs(parameters)
    if updates is not None:
        significance = significance + np.float32(c) * np.abs(updates)
    core = np.zeros(parameters.size, bool)
    core[np.argsort(-significance, kind="stable")[:size]] = True
    return core


def models(elements: int) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    random = np.random.RandomState(elements)
    normal = random.normal(size=elements).astype(np.float32)
    few = random.randint(-2, 3, elements).astype(np.float32)
    return {
        "normal": (normal, random.permutation(normal)),
        "the first parameters": (normal, None),
        "equals": (few, random.permutation(few)),
        "zeros": (np.zeros(elements, np.float32), few * (few == 2)),
    }


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("elements", [1000, 200_001])
def test_the_core_is_what_matters_most(elements: int, name: str) -> None:
    with kernels(name):
        for kind, (parameters, updates) in models(elements).items():
            for size in (1, elements // 5, elements - 1, elements):
                found = choose(Worker(parameters, updates), size, c=2.0)
                expected = largest(parameters, updates, 2.0, size)
                assert np.array_equal(found, expected), (kind, size)


def test_few_are_counted_one_by_one() -> None:
    parameters, updates = models(200_001)["normal"]
    worker = Worker(parameters, updates)
    choose(worker, 40_000, c=1.0)
    brackets = [asked["bracket"] for asked in worker.asked if "bracket" in asked]
    assert brackets == [brackets[0]] * SERVERS
    significance = np.abs(parameters) + np.abs(updates)
    least, most = np.array(brackets[0], np.int32).view(np.float32)
    within = (significance >= least) & (significance <= most)
    assert 0 < np.count_nonzero(within) < 0.05 * significance.size


def test_a_sample_that_misleads_does_no_harm() -> None:
    parameters, updates = np.ones((2, 200_001), np.float32)
    worker, step = Worker(parameters, updates), 4
    for server in worker.servers:  # large where a sample looks, slice after slice
        first = 0
        for _, (of_slice, _) in sorted(server.snapshots.items()):
            of_slice[first::step] = 5 + np.arange(of_slice[first::step].size)
            first = (first - of_slice.size) % step
    found = choose(worker, 60_000, c=1.0)
    assert np.array_equal(found, largest(parameters, updates, 1.0, 60_000))
    assert {asked["step"] for asked in worker.asked if "step" in asked} == {step}
    brackets = [tuple(asked["bracket"]) for asked in worker.asked if "bracket" in asked]
    assert brackets[-1] == _core.WHOLE_BRACKET


def test_updates_of_other_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="an update of 2 of 3 parameters"):
        _core.CoreSelection({(0, 0): (np.ones(3, np.float32), np.ones(2, np.float32))})


def test_a_sample_of_no_elements_is_refused() -> None:
    selection = _core.CoreSelection({(0, 0): (np.ones(3, np.float32), None)})
    with pytest.raises(ValueError, match="a sample of every 0th element"):
        selection.sample(1.0, 0)
