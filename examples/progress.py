"""What a training shows while it runs: a bar on a terminal, lines in a log, scalars on request."""
from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Callable

import script

with script.packages():
    from tqdm import tqdm

LINES_EVERY, SCALARS_EVERY, BAR_EVERY = 10.0, 10.0, 0.2  # seconds

_BAR = "{desc}{percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} {unit}, {remaining} left{postfix}"


def print_line(*words: object) -> None:
    """As `print`, above a bar where there is one."""
    tqdm.write(" ".join(map(str, words)), file=sys.stdout)
    sys.stdout.flush()


def percent(share: float | None) -> str:
    """A share as text; a dash where it is not known."""
    return "-" if share is None else f"{share:.0%}"


class Progress:
    """Follows the steps of a training, which has as many in each epoch.

    Parameters
    ----------
    args
        With what `script.add_progress_flags` adds.
    shown
        Whether this worker shows a bar or lines.
    epochs
        Which are to come, from 1.
    steps
        That an epoch has.
    samples
        That a step has, over all workers.
    store
        Of which rank 0 writes scalars.
    waiting_share
        Tells the share of the epoch in which the device waited for communication, as far as it is
        known. `waiting.Watch` has one.
    """

    def __init__(self, args: argparse.Namespace, *, shown: bool, epochs: range, steps: int,
                 samples: int, store: Any,
                 waiting_share: Callable[[], float | None] = lambda: None) -> None:
        bar = args.progress == "bar" or (args.progress == "auto" and sys.stderr.isatty())
        self._bar = tqdm(total=len(epochs) * steps, bar_format=_BAR, unit="steps", leave=False,
                         dynamic_ncols=True, disable=not (shown and bar))
        self._lines = shown and not bar
        self._epochs, self._steps, self._samples = epochs, steps, samples
        self.waiting_share = waiting_share
        directory = args.tensorboard if store.rank == 0 else None
        self._scalars = Scalars(directory, store, (epochs.start - 1) * steps)
        self._epoch = self._step = self._done = 0
        self._loss = float("nan")
        self._begun = self._shown = self._written = time.time()
        self._ended: float | None = None

    def begin_epoch(self, epoch: int, done: int = 0) -> None:
        """Its first step comes next, or the one after the `done` that an interrupted run has made:
        these are shown, and count for no speed."""
        self._epoch, self._step, self._done = epoch, done, done
        last = self._epochs.stop - 1
        self._bar.set_description(f"epoch {min(epoch, last)}/{last}", refresh=False)
        place = (epoch - self._epochs.start) * self._steps + done
        if self._bar.n != place:
            # Its `update` would take them for made just now, and tell the time left by that.
            self._bar.n = self._bar.last_print_n = self._bar.initial = place
        self._begun, self._ended = time.time(), None

    def end_epoch(self) -> None:
        """Its steps have been computed; what follows counts for no epoch. The bar now shows all
        that is known of it, however short it was."""
        self._ended = time.time()
        if not self._lines:
            self._show()

    @property
    def samples_per_second(self) -> float:
        """Of the epoch."""
        made = self._step - self._done
        return made * self._samples / max(1e-9, (self._ended or time.time()) - self._begun)

    def step(self, loss: float | None) -> None:
        """A step is queued; `loss` is the epoch's mean, of the steps that have been computed, or
        None where nothing new is known of it."""
        self._step += 1
        self._loss = self._loss if loss is None else loss
        self._scalars.begin((self._epoch - 1) * self._steps + self._step)
        self._bar.update()
        now = time.time()
        if now - self._shown >= (LINES_EVERY if self._lines else BAR_EVERY):
            self._shown = now
            self._show()
        if now - self._written >= SCALARS_EVERY:
            self._written = now
            self.write({})

    def _show(self) -> None:
        state = f"loss {self._loss:.4f}, {self.samples_per_second:.0f} samples/s"
        share = self.waiting_share()
        if share is not None:
            state += f", {share:.0%} waiting"
        if self._lines:
            print_line(f"{self._epoch:5d}  {self._step}/{self._steps} steps, {state}")
        else:
            self._bar.set_postfix_str(state)

    def write(self, values: dict[str, float]) -> None:
        """Writes scalars of these names, and what is known of every step."""
        self._scalars.write((self._epoch - 1) * self._steps + self._step, {
            "loss/training": self._loss,
            **values,
            "speed/samples_per_second": self.samples_per_second,
            "communication/waiting_share": self.waiting_share(),
        })

    def end(self) -> None:
        """The training has ended."""
        self._bar.close()
        self._scalars.close()


class Scalars:
    """What TensorBoard shows, by the number of steps; nothing without a directory."""

    def __init__(self, directory: str | None, store: Any, step: int) -> None:
        self._writer: Any = None
        self._store = store
        self._step = step  # the last one that is written, or that was before this run
        self._bytes: dict[str, int] | None = None
        self._zeros: dict[Any, tuple[int, int]] = {}  # counts by key
        if directory:
            with script.packages():
                from tensorboardX import SummaryWriter
            self._writer = SummaryWriter(directory)

    def begin(self, step: int) -> None:
        """Counts from the end of this step, where it is the first of this run: with that one the
        initial parameters travel, which belong to no step."""
        if self._writer is not None and self._bytes is None and hasattr(self._store, "stats"):
            stats = self._store.stats()
            self._step, self._bytes, self._zeros = step, _bytes(stats), stats["zero_counts"]

    def write(self, step: int, values: dict[str, float | None]) -> None:
        """Adds what the store has done since the last step of which this was called."""
        if self._writer is None:
            return
        for name, value in {**values, **self._of_store(step)}.items():
            if value is not None:
                self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def _of_store(self, step: int) -> dict[str, float | None]:
        """Bytes that a step of this worker sends and receives, and how small gradients become."""
        before = self._bytes
        if step == self._step or before is None:
            return {}
        stats, steps = self._store.stats(), step - self._step
        self._step, self._bytes = step, _bytes(stats)
        found = {f"communication/{way}_bytes_per_step": (self._bytes[way] - before[way]) / steps
                 for way in before}
        return {**found, "communication/compression_ratio": stats["ratio"],
                **self._new_zeros(stats["zero_counts"])}

    def _new_zeros(self, counts: dict[Any, tuple[int, int]]) -> dict[str, float | None]:
        """Shares of elements that compression has made 0 since the last call: of all keys that were
        looked at, and of the largest one."""
        before, self._zeros = self._zeros, counts
        new = {key: (zeros - before.get(key, (0, 0))[0], seen - before.get(key, (0, 0))[1])
               for key, (zeros, seen) in counts.items()}
        if not counts:
            return {}
        zeros, seen = (sum(numbers) for numbers in zip(*new.values()))
        largest = max(counts, key=lambda key: counts[key][1])
        found = {"": (zeros, seen), "_of_largest_key": new[largest]}
        return {f"communication/zeros{name}": zeros / seen
                for name, (zeros, seen) in found.items() if seen}

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _bytes(stats: dict[str, Any]) -> dict[str, int]:
    return {way: sum(stats[way].values()) for way in ("sent", "received")}


class CompressionReport:
    """What a store's compression does in an epoch, in a line."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._last: dict[str, Any] = {}

    @property
    def active(self) -> bool:
        """Whether the store has keys that it compresses."""
        return hasattr(self._store, "method") and bool(self._store.method.compressed_keys())

    def text(self) -> str:
        """What it has done since the last call, and how small gradients have become so far."""
        stats, last = self._store.stats(), self._last
        self._last = stats
        megabytes = {way: (sum(stats[way].values()) - sum(last.get(way, {}).values())) / 1e6
                     for way in ("sent", "received")}
        seconds = ", ".join(f"{what} {stats[what] - last.get(what, 0):.2f} s"
                            for what in ("encode", "queue", "wire", "decode"))
        return (f"sent {megabytes['sent']:.2f} MB, received {megabytes['received']:.2f} MB; "
                f"gradients {stats['ratio']:.1f} times smaller, {stats['zeros']:.0%} zeros so far; "
                f"{seconds}")
