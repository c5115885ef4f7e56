"""What the training scripts share: the import of MXNet, devices, checkpoints and progress."""
from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import shutil
import sys
import time
from typing import Any, Callable

STOCK_STORES = ("local", "device", "nccl", "dist_sync", "dist_device_sync", "dist_async")


def import_mxnet(store: str) -> None:
    """Imports it, with kvstore_ext where `store` may be of that; ends where `store` is unknown."""
    # Importing kvstore_ext registers its stores. It comes before mxnet because it sets a variable
    # that mxnet reads while it is imported: without it communication and computation hardly
    # overlap. From Python 3.12 on mxnet needs it whatever the store: it restores what newer
    # versions removed.
    if store not in STOCK_STORES or sys.version_info >= (3, 12):
        import kvstore_ext  # noqa: F401
    import mxnet as mx

    known = tuple(mx.kvstore.KVStoreBase.kv_registry)
    if store not in STOCK_STORES + known:
        # mx.kv.create would quietly make a local store of it.
        sys.exit(f"--kv-store {store} is unknown; known are {', '.join(STOCK_STORES)} and "
                 f"{', '.join(sorted(known))}")


def positive(text: str) -> int:
    """A flag's whole number of at least 1."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small; it must be at least 1")
    return int(text)


def find_devices(text: str) -> list[Any]:
    """The contexts that --devices names; ends where they are not there."""
    import mxnet as mx

    if text.startswith("cpu"):
        return [mx.cpu(i) for i in range(int(text.partition(":")[2] or 1))]
    devices = [mx.gpu(int(i)) for i in text.split(",")]
    if max(device.device_id for device in devices) >= mx.context.num_gpus():
        sys.exit(f"--devices {text}: MXNet sees {mx.context.num_gpus()} GPUs here")
    return devices


class Checkpoints:
    """The checkpoints in --checkpoint-dir, a folder for each epoch; ends where flags misfit them.

    What can be wrong on one worker alone is looked at before it joins the others.
    """

    def __init__(self, directory: str | None, resume: bool) -> None:
        self._directory = directory
        self.found: list[str] = []  # folders, in the order of epochs
        if directory:
            os.makedirs(directory, exist_ok=True)
            self.found = sorted(os.path.join(directory, name) for name in os.listdir(directory)
                                if name.startswith("epoch-"))
        if self.found and not resume:
            sys.exit(f"{directory} holds the checkpoints of an earlier run, the last of them "
                     f"{os.path.basename(self.found[-1])}: give --resume or another "
                     f"--checkpoint-dir")
        if resume and not self.found:
            sys.exit(f"--resume: there is no checkpoint in --checkpoint-dir {directory}")

    def about_last(self, flags: dict[str, Any], equal: tuple[str, ...]) -> dict[str, Any]:
        """What the last one says of its run; ends where one of `equal` is another flag now."""
        with open(os.path.join(self.found[-1], "about.json")) as file:
            about = json.load(file)
        for flag in equal:
            if about["flags"][flag] != flags[flag]:
                sys.exit(f"--resume: {self.found[-1]} was written with --"
                         f"{flag.replace('_', '-')} {about['flags'][flag]}, this run has "
                         f"{flags[flag]}")
        return about

    def path(self, epoch: int) -> str:
        assert self._directory
        return os.path.join(self._directory, f"epoch-{epoch:04d}")

    def write(self, epoch: int, about: dict[str, Any], fill: Callable[[str], None]) -> None:
        """Calls `fill` with a folder and renames it, so that it is there whole or not."""
        assert self._directory
        partial = os.path.join(self._directory, "partial")
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)
        fill(partial)
        with open(os.path.join(partial, "about.json"), "w") as file:
            json.dump({"epoch": epoch, **about}, file, indent=1)
        os.rename(partial, self.path(epoch))


def save_states(trainer: Any, folder: str) -> str:
    """Writes the optimizer's state into a folder; returns why not, or nothing."""
    try:
        trainer.save_states(os.path.join(folder, "optimizer.states"))
    except _no_states() as error:
        return f"the store {trainer._kvstore.type} keeps it on the servers ({error})"
    return ""


def load_states(trainer: Any, file: str, not_saved: str, schedule: Any) -> str:
    """Reads the optimizer's state and gives it the schedule; returns why not, or nothing."""
    try:
        if not_saved:
            raise NotImplementedError(not_saved)
        trainer.load_states(file)
        trainer.optimizer.lr_scheduler = copy.copy(schedule)
    except _no_states() as error:
        return f"the optimizer's state (such as its momentum) starts afresh: {error}"
    return ""


def _no_states() -> tuple[type[Exception], ...]:
    """What stores raise that cannot save or load the optimizer's state; stock ones assert."""
    import mxnet as mx

    return AssertionError, NotImplementedError, mx.MXNetError


def global_parameters(store: Any) -> Any:
    """Where a worker's parameters are its own (Slim-DP), has them be the servers' meanwhile."""
    if hasattr(store, "global_parameters"):
        return store.global_parameters()
    return contextlib.nullcontext()


class Compression:
    """What a store's compression has done, and what it carries over, which is each worker's own."""

    def __init__(self, store: Any, directory: str | None) -> None:
        self._store, self._directory = store, directory
        self._last: dict[str, Any] = {}

    @property
    def active(self) -> bool:
        """Whether the store has keys that it compresses."""
        return hasattr(self._store, "method") and bool(self._store.method.compressed_keys())

    def report(self) -> str:
        """What it has done since the last call."""
        stats, last = self._store.stats(), self._last
        self._last = stats
        megabytes = {way: (sum(stats[way].values()) - sum(last.get(way, {}).values())) / 1e6
                     for way in ("sent", "received")}
        seconds = ", ".join(f"{what} {stats[what] - last.get(what, 0):.2f} s"
                            for what in ("encode", "queue", "wire", "decode"))
        return (f"sent {megabytes['sent']:.2f} MB, received {megabytes['received']:.2f} MB; "
                f"gradients {stats['ratio']:.1f} times smaller, {stats['zeros']:.0%} zeros; "
                f"{seconds}")

    def save(self, trainer: Any, epoch: int) -> None:
        """Writes what a worker other than rank 0, whose checkpoint has it, carries over."""
        if self._directory and self._store.rank > 0:
            trainer.save_states(self._own(epoch))

    def states(self, folder: str, epoch: int) -> str:
        """The file from which a worker goes on: its own where it has one."""
        own = self._own(epoch)
        return own if os.path.exists(own) else os.path.join(folder, "optimizer.states")

    def _own(self, epoch: int) -> str:
        assert self._directory
        return os.path.join(self._directory,
                            f"worker-{self._store.rank}-epoch-{epoch:04d}.states")


class Progress:
    """A bar on a terminal, else a line now and then."""

    def __init__(self, shown: bool, steps: int) -> None:
        self._shown, self._steps = shown, steps
        self._bar = sys.stdout.isatty()
        self._last = time.time()

    def show(self, epoch: int, step: int, loss: float, rate: float) -> None:
        """`loss` is the mean up to this step, `rate` in samples a second."""
        if not self._shown or time.time() - self._last < (0.1 if self._bar else 10):
            return
        self._last = time.time()
        state = f"{step}/{self._steps} steps  loss {loss:.4f}  {rate:.0f} samples/s"
        if self._bar:
            filled = 30 * step // self._steps
            print(f"\r{epoch:5d} [{'#' * filled}{'.' * (30 - filled)}] {state}\033[K", end="",
                  flush=True)
        else:
            print(f"{epoch:5d}  {state}", flush=True)

    def end(self) -> str:
        """What has to precede a line that replaces the bar."""
        return "\r\033[K" if self._bar else ""


def make_schedule(args: Any, steps_per_epoch: int) -> Any:
    """The learning rate of each step, by the flags that `add_schedule_flags` adds.

    The schedule counts steps and is part of the optimizer, so it works wherever that runs.
    """
    from mxnet import lr_scheduler

    rising = {"base_lr": args.lr, "warmup_steps": int(args.warmup_epochs * steps_per_epoch)}
    last = args.epochs * steps_per_epoch
    if args.lr_schedule == "step":
        falls = [int(epoch) * steps_per_epoch for epoch in args.lr_steps.split(",")]
        return lr_scheduler.MultiFactorScheduler(falls, factor=args.lr_factor, **rising)
    if args.lr_schedule == "cosine":
        return lr_scheduler.CosineScheduler(last, **rising)
    if args.lr_schedule == "polynomial":
        return lr_scheduler.PolyScheduler(last, pwr=args.lr_power, **rising)
    return lr_scheduler.FactorScheduler(step=sys.maxsize, **rising)


def add_schedule_flags(parser: Any, default: str) -> None:
    """--lr-schedule and what belongs to it, --epochs apart."""
    parser.add_argument("--lr-schedule", default=default,
                        choices=("constant", "step", "cosine", "polynomial"))
    parser.add_argument("--lr-steps", default="30,60,80", metavar="E,E,...",
                        help="with step: the epochs after which the learning rate falls")
    parser.add_argument("--lr-factor", type=float, default=0.1,
                        help="with step: to this part of it")
    parser.add_argument("--lr-power", type=float, default=0.5,
                        help="with polynomial: it falls to 0 as this power of what is left")
    parser.add_argument("--warmup-epochs", type=float, default=0,
                        help="the learning rate first rises linearly from 0 for so long")
