"""Slim-DP in NumPy: K workers and the servers, written from the paper, apart from the core's C++.

The model is one vector, float32, in which the slices of all keys lie one after the other.
"""
from __future__ import annotations

import dataclasses
import math
from typing import Iterator

import numpy as np

from tests.support.reference.codecs import Method, TernGrad
from tests.support.reference.formulas import Draws, clip, mix

_64_BITS = (1 << 64) - 1
SHARES_KEY = 0x7368617265730000


@dataclasses.dataclass(frozen=True)
class Slice:
    """Where a slice lies: in its key from `offset` on, in the model from `begin` on."""

    key: int
    offset: int
    begin: int
    length: int


@dataclasses.dataclass(frozen=True)
class Options:
    """As kvstore_ext's, but for p, which is the caller's."""

    alpha: float = 0.3
    beta: float = 0.15
    q: int = 1000
    c: float | str = "auto"
    server_lr: float = 1.0
    core_delay: int = 0
    explorer_mean: str = "pushed"
    seed: int = 0
    values: Method | None = None


def stream_of(seed: int, sender: int, key: int, round: int) -> int:
    """From which other numbers of a sender, key and round follow."""
    stream = mix(seed)
    for part in (sender, key, round):
        stream = mix(stream ^ part)
    return stream


def below(stream: int, limit: int) -> Iterator[int]:
    """Numbers below a limit, each as likely."""
    position = 0
    while True:
        bits = mix((stream + position // 2) & _64_BITS)
        product = (bits & 0xFFFFFFFF if position % 2 else bits >> 32) * limit
        position += 1
        if product & 0xFFFFFFFF >= (1 << 32) % limit:
            yield product >> 32


def explore(core: np.ndarray, count: int, stream: int) -> np.ndarray:
    """The core and `count` elements drawn from outside it; both as one bool an element."""
    together = core.copy()
    if count == 0:
        return together
    outside = int((~core).sum())
    insert = count <= outside // 2
    if not insert:
        together[:] = True
    left = count if insert else outside - count
    numbers = below(stream, core.size)
    while left > 0:
        element = next(numbers)
        if together[element] == insert or (not insert and core[element]):
            continue
        together[element] = insert
        left -= 1
    return together


def ways_outwards(all_: int, part: int, drawn: int, mode: int) -> Iterator[tuple[int, int]]:
    """Shares from the mode outwards, the larger one first, and how many choices of `drawn` elements
    have that share; each number is the one before it times a fraction of small numbers."""
    outside = all_ - part
    above = under = mode
    ways_above = ways_under = math.comb(part, mode) * math.comb(outside, drawn - mode)
    yield mode, ways_above
    while ways_above or ways_under:
        ways_above *= (part - above) * (drawn - above)
        ways_above //= (above + 1) * (outside - drawn + above + 1)
        above += 1
        yield above, ways_above
        ways_under *= under * (outside - drawn + under)
        ways_under //= (part - under + 1) * (drawn - under + 1)
        under -= 1
        yield under, ways_under


def draw_share(all_: int, part: int, drawn: int, stream: int, position: int) -> int:
    """How many of `drawn` elements, from `all_`, fall among `part` of them: the hypergeometric
    distribution's value at which its sum, from the mode outwards, passes a random number."""
    all_ways = math.comb(all_, drawn)
    mode = int((drawn + 1) * (part + 1) / (all_ + 2))
    mode = min(min(part, drawn), max(max(0, part + drawn - all_), mode))
    left = (mix((stream + position) & _64_BITS) >> 11) * 2.0**-53
    found = mode
    for share, ways in ways_outwards(all_, part, drawn, mode):
        if (chance := ways / all_ways) > 0:
            found = share
            left -= chance
        if left < 0:
            return found
    return found


def select(significance: np.ndarray, size: int) -> np.ndarray:
    """The largest elements, the first ones among equals, as one bool an element."""
    order = np.argsort(-significance, kind="stable")
    chosen = np.zeros(significance.size, bool)
    chosen[order[:size]] = True
    return chosen


class Simulation:
    """Algorithm 1: what a round makes of the workers' local models, and of the global one."""

    def __init__(
        self, options: Options, workers: int, slices: list[Slice], initial: np.ndarray
    ) -> None:
        self.options = options
        self.slices = slices
        self.parameters = initial.astype(np.float32)
        self.base = [self.parameters.copy() for _ in range(workers)]
        self.rounds = 0
        elements = self.parameters.size
        self.core_size = math.floor(round(options.beta * elements, 6))
        self.together_size = math.floor(round(options.alpha * elements, 6))
        self.cores = {0: self._select(np.zeros_like(self.parameters))}

    def round(self, models: list[np.ndarray]) -> list[np.ndarray]:
        """The local models after a round, from those that p steps of training have left."""
        self.rounds += 1
        options = self.options
        selection = max(0, (self.rounds - 1 - options.core_delay) // options.q)
        core = self.cores[selection]
        full = self.rounds % options.q == 0
        sets = [self.communicated(rank, core) for rank in range(len(models))]
        total = np.zeros_like(self.parameters)
        pushes = np.zeros(total.size, int)
        limits = self._limits(models)
        for rank, (model, together) in enumerate(zip(models, sets)):
            update = model - self.base[rank]
            pushed = np.ones_like(together) if full else together
            total[pushed] += self._travel(rank, update, pushed, limits)
            pushes[pushed] += 1
        if options.explorer_mean == "all":
            pushes[:] = len(models)
        rates = (options.server_lr / np.maximum(pushes, 1)).astype(np.float32)
        self.parameters = self.parameters + rates * total
        if full:
            self.cores[self.rounds // options.q] = self._select(total)
        merged = [
            np.where(together, self.parameters, model) for model, together in zip(models, sets)
        ]
        self.base = [model.copy() for model in merged]
        return merged

    def communicated(self, rank: int, core: np.ndarray) -> np.ndarray:
        """Core and explorer of a worker in this round: a sample of all elements outside the core,
        whose shares of the slices are drawn before the elements."""
        parts = [core[s.begin : s.begin + s.length] for s in self.slices]
        outside = int((~core).sum())
        left = self.together_size - self.core_size
        shares = stream_of(self.options.seed, rank, SHARES_KEY, self.rounds)
        sets = []
        for position, (part, slice_) in enumerate(zip(parts, self.slices)):
            free = int((~part).sum())
            count = draw_share(outside, free, left, shares, position) if left else 0
            outside -= free
            left -= count
            stream = stream_of(self.options.seed, rank, slice_.key, self.rounds)
            sets.append(explore(part, count, mix(stream ^ slice_.offset)))
        return np.concatenate(sets)

    def _select(self, update: np.ndarray) -> np.ndarray:
        """Equation 1."""
        c = self.options.c
        sizes = np.abs(update)
        if isinstance(c, str):
            total = math.fsum(sizes.astype(np.float64))
            c = math.fsum(np.abs(self.parameters).astype(np.float64)) / total if total else 0.0
        return select(np.abs(self.parameters) + np.float32(c) * sizes, self.core_size)

    def _keys(self) -> dict[int, list[Slice]]:
        keys: dict[int, list[Slice]] = {}
        for slice_ in self.slices:
            keys.setdefault(slice_.key, []).append(slice_)
        return keys

    def _limits(self, models: list[np.ndarray]) -> dict[int, list[np.float32]]:
        """By key and worker, the scaler of its own update."""
        method = self.options.values
        if method is None:
            return {}
        limits = {}
        for key, slices in self._keys().items():
            where = slice(slices[0].begin, slices[-1].begin + slices[-1].length)
            limits[key] = [
                method.scaler(model[where] - base[where])
                for model, base in zip(models, self.base)
            ]
        return limits

    def _travel(
        self,
        rank: int,
        update: np.ndarray,
        pushed: np.ndarray,
        limits: dict[int, list[np.float32]],
    ) -> np.ndarray:
        """The pushed elements as the servers have them."""
        method = self.options.values
        if method is None:
            return update[pushed]
        parts = []
        for slice_ in self.slices:
            where = slice(slice_.begin, slice_.begin + slice_.length)
            values = update[where][pushed[where]]
            draws = Draws(getattr(method, "seed", 0), rank, slice_.key, self.rounds)
            numbers = draws.numbers(values.size, slice_.offset)
            of_workers = limits[slice_.key]
            own = of_workers[rank]
            if isinstance(method, TernGrad):
                values = clip(values, own)  # also where the scaler is another worker's
            scaler = max(of_workers) if method.shares_scaler else own
            reduced = method.reduce(values, scaler, numbers)
            parts.append(method.expand(reduced))
        return np.concatenate(parts)
