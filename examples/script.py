"""What the training scripts share: flags, the import of what they need, devices and schedules."""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
from typing import Any, Callable, Iterator

STOCK_STORES = ("local", "device", "nccl", "dist_sync", "dist_device_sync", "dist_async")


@contextlib.contextmanager
def packages() -> Iterator[None]:
    """Around imports: ends where a package is not installed, and says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = "cpu" if error.name == "mxnet" else "examples"
        sys.exit(f"the package {error.name} is not installed: pip install '.[{extra}]' brings it")


def import_mxnet(store: str) -> None:
    """Imports it behind kvstore_ext; ends where `store` is unknown."""
    # Importing kvstore_ext registers its stores. It comes before mxnet because it sets a variable
    # that mxnet reads while it is imported: without it communication and computation hardly
    # overlap. From Python 3.12 on mxnet needs it whatever the store: it restores what newer
    # versions removed.
    with packages():
        # Where another launcher starts MXNet's own servers, importing mxnet alone is all they do.
        serves = store in STOCK_STORES and os.environ.get("DMLC_ROLE") in ("server", "scheduler")
        if not serves or sys.version_info >= (3, 12):
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


def file_to_write(text: str) -> str:
    """A flag's file, which is written after hours: its directory is made now."""
    directory = os.path.dirname(text) or os.curdir
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"the directory {directory} cannot be made: {error.strerror}") from None
    return text


def above_zero(text: str) -> float:
    """A flag's number above 0."""
    if not float(text) > 0:
        raise argparse.ArgumentTypeError(f"{text} must be above 0")
    return float(text)


def share(text: str) -> float:
    """A flag's number above 0 and below 1."""
    if not 0 < float(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be above 0 and below 1")
    return float(text)


def numbers(count: int = 0) -> Callable[[str], tuple[int, ...]]:
    """A flag's whole numbers of at least 1, separated by commas: so many, or any number of them."""

    def read(text: str) -> tuple[int, ...]:
        parts = text.split(",")
        fits = all(part.isdecimal() and int(part) > 0 for part in parts)
        if not fits or count not in (0, len(parts)):
            most = f"{count} " if count else ""
            raise argparse.ArgumentTypeError(
                f"found '{text}', allowed are {most}whole numbers of at least 1, separated by "
                "commas")
        return tuple(map(int, parts))

    return read


def find_devices(text: str) -> list[Any]:
    """The contexts that --devices names; ends where they are not there."""
    import mxnet as mx

    own = os.environ.get("KVSTORE_EXT_LOCAL_RANK", "0")
    cpus = re.fullmatch(r"cpu(?::([1-9]\d*))?", text)
    if cpus:
        return [mx.cpu(i) for i in range(int(cpus[1] or 1))]
    if not re.fullmatch(r"own|\d+(,\d+)*", text):
        sys.exit(f"--devices {text}: allowed are cpu, cpu:2 (two CPU contexts), own, or GPU ids "
                 "such as 0,1")
    devices = [mx.gpu(int(i)) for i in (own if text == "own" else text).split(",")]
    if max(device.device_id for device in devices) >= mx.context.num_gpus():
        asked = f"GPU {own} of worker {own} of this host: " if text == "own" else ""
        sys.exit(f"--devices {text}: {asked}MXNet sees {mx.context.num_gpus()} GPUs here")
    return devices


def global_parameters(store: Any) -> Any:
    """Where a worker's parameters are its own (Slim-DP), has them be the servers' meanwhile."""
    if hasattr(store, "global_parameters"):
        return store.global_parameters()
    return contextlib.nullcontext()


def add_store_flags(parser: argparse.ArgumentParser) -> None:
    """Which store a Trainer has, and on which devices."""
    parser.add_argument("--kv-store", default="device",
                        help="any name mx.kv.create knows: p3, dist_sync, device, local, ...")
    parser.add_argument("--update-on-kvstore", choices=("true", "false"),
                        help="whether the store runs the optimizer (default: as MXNet chooses)")
    parser.add_argument("--compression", type=json.loads, metavar="JSON",
                        help="""passed to the store, e.g. '{"type": "terngrad", "clip_sigma":
                        2.5}'; each epoch then tells what it did""")
    parser.add_argument("--devices", default="cpu",
                        help="of each worker: cpu, cpu:2 (two CPU contexts), own (the GPU of its "
                        "number among its host's) or GPU ids such as 0,1")


def add_progress_flags(parser: argparse.ArgumentParser) -> None:
    """What is shown, see progress.py."""
    parser.add_argument("--progress", default="auto", choices=("auto", "bar", "lines"),
                        help="auto: a bar where errors go to a terminal, otherwise lines")
    parser.add_argument("--tensorboard", metavar="DIR",
                        help="rank 0 writes loss, accuracy, speed, bytes each way, compression "
                        "ratio and waiting time there")
    parser.add_argument("--verbose", action="store_true",
                        help="all workers print, not rank 0 alone")


def add_checkpoint_flags(parser: argparse.ArgumentParser) -> None:
    """What checkpoints.Checkpoints takes."""
    parser.add_argument("--checkpoint-dir", help="write a checkpoint after each epoch")
    parser.add_argument("--resume", action="store_true",
                        help="continue from the last checkpoint; every worker must see its folder")


def add_snapshot_flags(parser: argparse.ArgumentParser) -> None:
    """What the stores of kvstore_ext take."""
    parser.add_argument("--snapshot", metavar="DIR",
                        help="go on from the last snapshot there, and take further ones; every "
                             "worker must see the directory")
    parser.add_argument("--snapshot-every", type=positive, default=100, metavar="N",
                        help="steps from one snapshot to the next (default %(default)s)")


def restore(store: Any, args: Any, log: Callable[[str], None], *parts: Any) -> int:
    """Has a store go on from the last snapshot in --snapshot, and take further ones of these parts
    of the script as well; returns how many steps are done, which it logs."""
    if not hasattr(store, "restore"):
        sys.exit(f"--snapshot: the store {store.type} takes none; those of kvstore_ext do")
    from kept_values import KeptFlags

    for part in (KeptFlags(args), *parts):
        store.include_in_snapshots(part)
    step: int = store.restore(args.snapshot) or 0
    if step:
        log(f"goes on from the snapshot of step {step} in {args.snapshot}")
    return step


def place(steps: int, steps_per_epoch: int) -> tuple[int, int]:
    """How many epochs are over after so many steps, and how many steps of the next one are done:
    all of them where the run may have been interrupted before that epoch was evaluated."""
    epochs, before = divmod(max(0, steps - 1), steps_per_epoch)
    return epochs, before + 1 if steps else 0


def make_schedule(args: Any, steps_per_epoch: float) -> Any:
    """The learning rate of each step, by the flags that `add_schedule_flags` adds.

    The schedule counts steps and is part of the optimizer, so it works wherever that runs.
    """
    from mxnet import lr_scheduler

    falls = [round(epoch * steps_per_epoch) for epoch in args.lr_steps]
    last = round(args.epochs * steps_per_epoch)
    rising_steps = int(args.warmup_epochs * steps_per_epoch)
    if args.lr_schedule == "step" and any(a >= b for a, b in zip([0, *falls], falls)):
        sys.exit(f"--lr-steps {','.join(f'{epoch:g}' for epoch in args.lr_steps)}: each epoch must "
                 "come after the one before it")
    if args.lr_schedule in ("cosine", "polynomial") and rising_steps >= last > 0:
        sys.exit(f"--warmup-epochs {args.warmup_epochs:g} leaves --lr-schedule {args.lr_schedule} "
                 f"nothing of --epochs {args.epochs}")
    rising = {"base_lr": args.lr, "warmup_steps": rising_steps}
    if args.lr_schedule == "step":
        return lr_scheduler.MultiFactorScheduler(falls, factor=args.lr_factor, **rising)
    if args.lr_schedule == "cosine" and last:
        return lr_scheduler.CosineScheduler(last, **rising)
    if args.lr_schedule == "polynomial" and last:
        return lr_scheduler.PolyScheduler(last, pwr=args.lr_power, **rising)
    return lr_scheduler.FactorScheduler(step=sys.maxsize, **rising)


def add_schedule_flags(parser: argparse.ArgumentParser, default: str) -> None:
    """--lr-schedule and what belongs to it, --epochs apart."""
    parser.add_argument("--lr-schedule", default=default,
                        choices=("constant", "step", "cosine", "polynomial"))
    parser.add_argument("--lr-steps", type=numbers(), default="30,60,80", metavar="E,E,...",
                        help="with step: the epochs after which the learning rate falls")
    parser.add_argument("--lr-factor", type=float, default=0.1,
                        help="with step: to this part of it")
    parser.add_argument("--lr-power", type=float, default=0.5,
                        help="with polynomial: it falls to 0 as this power of what is left")
    parser.add_argument("--warmup-epochs", type=float, default=0,
                        help="the learning rate first rises linearly from 0 for so long")
