"""Checkpoints of the training scripts: a folder an epoch, and what each worker carries over."""
from __future__ import annotations

import copy
import json
import os
import shutil
import sys
from typing import Any, Callable


class Checkpoints:
    """The checkpoints in --checkpoint-dir, a folder for each epoch; ends where flags misfit them.

    What can be wrong on one worker alone is looked at before it joins the others. A run that goes
    on from its snapshots, `again`, may find checkpoints of its own.
    """

    def __init__(self, directory: str | None, resume: bool, again: bool = False) -> None:
        self._directory = directory
        self.found: list[str] = []  # folders, in the order of epochs
        if resume and again:
            sys.exit("--resume goes on from a checkpoint, --snapshot from a snapshot: give one of "
                     "them")
        if resume:
            _check_is_there(directory)
        if directory:
            os.makedirs(directory, exist_ok=True)
            self.found = sorted(os.path.join(directory, name) for name in os.listdir(directory)
                                if name.startswith("epoch-"))
        if self.found and not resume and not again:
            sys.exit(f"{directory} holds the checkpoints of an earlier run, the last of them "
                     f"{os.path.basename(self.found[-1])}: give --resume or another "
                     f"--checkpoint-dir")
        if resume and not self.found:
            sys.exit(f"--resume: there is no checkpoint in --checkpoint-dir {directory}, no folder "
                     f"named epoch-0001 or the like")

    def begin_anew(self, snapshots: str | None, rank: int, log: Callable[[str], None]) -> None:
        """Renames the checkpoints that are there, since the run has found no snapshot to go on
        from: --resume would take the last of them. Removes what this worker carried over in an
        earlier run, which belongs to none of this one's."""
        if self._directory:
            _remove(self._directory, lambda name: name.startswith(f"worker-{rank}-epoch-"))
        if self.found:
            log(f"no snapshot in {snapshots}: begins anew; the checkpoints in {self._directory} "
                "are now named replaced-epoch-0001 and so on")
        for folder in self.found if rank == 0 else []:
            replaced = os.path.join(os.path.dirname(folder), f"replaced-{os.path.basename(folder)}")
            shutil.rmtree(replaced, ignore_errors=True)
            os.rename(folder, replaced)
        self.found = []

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

    def write(self, epoch: int, about: dict[str, Any], fill: Callable[[str], str],
              wait: Callable[[], None]) -> str:
        """Calls `fill` with a folder and renames it, so that it is there whole or not. It takes the
        place of one that an interrupted run has written of the same epoch. Before that it waits for
        what other workers write of their own. Returns what `fill` does: why the optimizer's state
        is not in it, or nothing."""
        assert self._directory
        partial = os.path.join(self._directory, "partial")
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)
        not_saved = fill(partial)
        with open(os.path.join(partial, "about.json"), "w") as file:
            json.dump({"epoch": epoch, "states_not_saved": not_saved, **about}, file, indent=1)
        wait()
        shutil.rmtree(self.path(epoch), ignore_errors=True)
        os.rename(partial, self.path(epoch))
        return not_saved

    def write_own(self, epoch: int, trainer: Any, rank: int, wait: Callable[[], None]) -> None:
        """Writes what a worker other than rank 0, whose checkpoint has it, carries over, and waits
        for the others: the checkpoint is there once all of it is."""
        if self._directory and rank > 0:
            own = self._own(epoch, rank)
            trainer.save_states(f"{own}.part")
            os.replace(f"{own}.part", own)
            wait()
            self._remove_outlived(rank)

    def _remove_outlived(self, rank: int) -> None:
        """Removes what a worker carried over before the last checkpoint of rank 0, which may be
        behind: whoever resumes goes on from that one."""
        assert self._directory
        names = os.listdir(self._directory)
        last = max((name for name in names if name.startswith("epoch-")), default="")
        own, first = f"worker-{rank}-epoch-", f"worker-{rank}-{last}"
        _remove(self._directory, lambda name: name.startswith(own) and name < first)

    def resume(self, trainer: Any, about: dict[str, Any], rank: int, batch: int, schedule: Any,
               log: Callable[[str], None]) -> None:
        """Goes on with the optimizer of the last one, of which `about_last` has told: with a
        worker's own state where it has one. `batch` is what steps will be told."""
        # Loading the state may send the optimizer to the servers, so it must be complete by now.
        trainer.optimizer.rescale_grad = 1 / batch
        epoch = about["epoch"]
        log(f"resumed from {self.found[-1]} after epoch {epoch}")
        complaint = load_states(trainer, self.states(epoch, rank), about["states_not_saved"],
                                schedule)
        if complaint:
            log(complaint)

    def states(self, epoch: int, rank: int) -> str:
        """The file from which a worker goes on: its own where it has one."""
        own = self._own(epoch, rank)
        return own if os.path.exists(own) else os.path.join(self.path(epoch), "optimizer.states")

    def _own(self, epoch: int, rank: int) -> str:
        assert self._directory
        return os.path.join(self._directory, f"worker-{rank}-epoch-{epoch:04d}.states")


def _remove(directory: str, which: Callable[[str], bool]) -> None:
    for name in filter(which, os.listdir(directory)):
        os.remove(os.path.join(directory, name))


def _check_is_there(directory: str | None) -> None:
    if directory is None:
        sys.exit("--resume needs --checkpoint-dir, the directory of the run to continue")
    if not os.path.isdir(directory):
        sys.exit(f"--resume: there is no directory {directory}, which --checkpoint-dir names")


def save_states(trainer: Any, folder: str) -> str:
    """Writes the optimizer's state into a folder; returns why not, or nothing."""
    try:
        trainer.save_states(os.path.join(folder, "optimizer.states"))
    except _no_states() as error:
        _raise_ours(error)
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
        _raise_ours(error)
        said = f"the optimizer's state (such as its momentum) starts afresh: {error}"
        if hasattr(trainer.optimizer, "beta2"):
            # It counts on, as schedules do, and so takes its empty averages for long ones.
            said += (
                ". Its first steps are up to 3 times too large; with --update-on-kvstore false the "
                "state stays with the workers, and is saved"
            )
        return said
    return ""


def _no_states() -> tuple[type[Exception], ...]:
    """What stores raise that cannot save or load the optimizer's state; stock ones assert."""
    import mxnet as mx

    return AssertionError, NotImplementedError, mx.MXNetError


def _raise_ours(error: Exception) -> None:
    """Lets errors of kvstore_ext's stores through: they can save and load it, so that the job has
    failed, or the file does not fit."""
    import kvstore_ext

    if isinstance(error, kvstore_ext.KVStoreError):
        raise error
