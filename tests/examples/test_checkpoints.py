"""What the workers of the training scripts carry over is there whole, and not for ever."""
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import checkpoints
import pytest


def saves(file: str) -> None:
    Path(file).write_text("whole")


def fails(file: str) -> None:
    Path(file).write_text("ha")
    raise OSError("the disk is full")


def nobody() -> None:
    """Who waits for nobody."""


def test_a_checkpoint_is_there_once_all_of_it_is(tmp_path: Path) -> None:
    """Whoever is lost meanwhile leaves the one before, with all that workers carried over."""
    saved = checkpoints.Checkpoints(str(tmp_path), resume=False)
    states = SimpleNamespace(save_states=saves)
    for rank in (1, 2):
        saved.write_own(1, states, rank, nobody)
    saved.write(1, {}, lambda folder: "", nobody)
    before = {path.name for path in tmp_path.iterdir()}

    def lose() -> None:
        there = {path.name for path in tmp_path.iterdir()}
        assert before <= there
        assert "epoch-0002" not in there
        raise ConnectionError("worker 1 is lost")

    with pytest.raises(ConnectionError):
        saved.write_own(2, states, 2, lose)
    with pytest.raises(ConnectionError):
        saved.write(2, {}, lambda folder: "", lose)
    found = checkpoints.Checkpoints(str(tmp_path), resume=True).found
    assert [Path(folder).name for folder in found] == ["epoch-0001"]


def test_a_workers_own_states_are_whole_and_last_as_long_as_their_checkpoint(
    tmp_path: Path,
) -> None:
    saved = checkpoints.Checkpoints(str(tmp_path), resume=False)
    for epoch in (1, 2, 3):
        for rank in (1, 12):
            saved.write_own(epoch, SimpleNamespace(save_states=saves), rank, nobody)
        if epoch < 3:  # rank 0 is behind
            saved.write(epoch, {}, lambda folder: "", nobody)
    kept = {"epoch-0001", "epoch-0002"}
    kept |= {f"worker-{rank}-epoch-000{epoch}.states" for rank in (1, 12) for epoch in (2, 3)}
    assert {path.name for path in tmp_path.iterdir()} == kept
    with pytest.raises(OSError, match="the disk is full"):
        saved.write_own(4, SimpleNamespace(save_states=fails), 1, nobody)
    assert not (tmp_path / "worker-1-epoch-0004.states").exists()
    last = checkpoints.Checkpoints(str(tmp_path), resume=True)
    assert last.states(2, 1) == str(tmp_path / "worker-1-epoch-0002.states")
    assert last.states(4, 1) == str(tmp_path / "epoch-0004" / "optimizer.states")


def test_a_run_that_begins_anew_takes_over_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    earlier = checkpoints.Checkpoints(str(tmp_path), resume=False)
    for rank in (1, 12):
        earlier.write_own(5, SimpleNamespace(save_states=saves), rank, nobody)
    checkpoints.Checkpoints(str(tmp_path), resume=False).begin_anew(None, 1, print)
    assert [path.name for path in tmp_path.iterdir()] == ["worker-12-epoch-0005.states"]


def test_a_run_goes_on_from_a_checkpoint_or_from_a_snapshot(tmp_path: Path) -> None:
    (tmp_path / "epoch-0001").mkdir()
    assert checkpoints.Checkpoints(str(tmp_path), resume=True).found
    assert checkpoints.Checkpoints(str(tmp_path), resume=False, again=True).found
    both = "--resume goes on from a checkpoint, --snapshot from a snapshot: give one of them"
    with pytest.raises(SystemExit, match=both):
        checkpoints.Checkpoints(str(tmp_path), resume=True, again=True)
