"""Takes snapshots of a store's run at common steps, and goes on from one."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Union

import mxnet as mx

from ..errors import KVStoreError
from ..notes import say
from ..whole_numbers import whole_number
from .choice import check_parts, choose
from .folder import Entry, complete, entry, next_number, remove_unfinished
from .manifest import Manifest, read_manifest
from .part import Part, RefusedByRank0Error, SnapshotError
from .random_states import RandomStates
from .sealed_files import read_sealed
from .writing import SHARED, Contents, Writing, file_of

PathLike = Union[str, "os.PathLike[str]"]


class Snapshots:
    """The snapshots of one store. Only the script's thread calls it, on all workers alike.

    Parameters
    ----------
    rank, workers, timeout
        The store's.
    agree
        Gives every worker rank 0's numbers, float64s: a list of the same length on all.
    failure
        Why the job has failed, if it has.
    """

    def __init__(
        self,
        rank: int,
        workers: int,
        timeout: float,
        agree: Callable[[List[float]], List[float]],
        failure: Callable[[], str],
    ) -> None:
        self._rank = rank
        self._workers = workers
        self._agree = agree
        # In the order in which they take things back.
        self._parts: Dict[str, Part] = {RandomStates.name: RandomStates()}
        self._writing = Writing(timeout, failure)
        # By directory, as os.path.abspath has it: a script may name one in two ways.
        self._last: Dict[str, int] = {}  # the step that was looked at last
        self._next: Dict[str, int] = {}  # numbers
        self._first = 0  # the step that this run goes on from
        self._taken: Dict[str, int] = {}  # the step of each one's last snapshot
        self._refused: Dict[str, FrozenSet[int]] = {}  # numbers that the run could not go on from

    def include(self, part: Part) -> None:
        """Has the run consist of this part too.

        Raises
        ------
        KVStoreError
            For one without a name, or with one that another part has, unless it may replace that.
        """
        if not part.name:
            raise KVStoreError(f"a part of snapshots needs a name; {type(part).__name__} has none")
        other = self.parts.get(part.name)
        if other is not None and other is not part and not part.may_replace(other):
            raise KVStoreError(
                f"snapshots have a part {part.name!r} already, a {type(other).__name__}; each part "
                "needs a name of its own"
            )
        self._parts[part.name] = part

    @property
    def parts(self) -> Dict[str, Part]:
        """By name, those that are left."""
        self._parts = {name: part for name, part in self._parts.items() if not part.gone}
        return self._parts

    def at_hand(self) -> Dict[Any, Any]:
        """Values of the store's keys that parts have in any case."""
        found: Dict[Any, Any] = {}
        for part in self.parts.values():
            found.update(part.at_hand())
        return found

    @property
    def steps(self) -> int:
        """How many the run has behind it, as the last part that counts them has it."""
        # Also asked for by a thread that reports, while the script's may include one more.
        counted = [part.steps for part in list(self._parts.values()) if not part.gone]
        return [steps for steps in counted if steps is not None][-1]

    @property
    def taken(self) -> int:
        """The step of the last snapshot."""
        return max(self._taken.values(), default=self._first)

    def take(self, directory: PathLike, every: int, keep: int) -> bool:
        """Begins a snapshot if one is due; see P3Worker.snapshot."""
        every = whole_number("every", every, 1)
        keep = whole_number("keep", keep, 1)
        step = self.steps
        place = os.path.abspath(directory)  # which is written by a thread, and a script may move
        due = step // every > self._last.get(place, self._first) // every
        self._last[place] = step
        if due:
            self._begin(place, keep, step)
        return due

    def take_now(self, directory: PathLike, keep: int) -> None:
        """Takes one, unless there is one of this step, and waits until it is written."""
        place = os.path.abspath(directory)
        if self.steps > self._taken.get(place, self._first):
            try:
                self.join()
            except KVStoreError as error:  # of an earlier one, in whose place this one comes
                say(str(error))
            self._begin(place, keep, self.steps)
        self.join()

    def _begin(self, place: str, keep: int, step: int) -> None:
        path = Path(place)
        target = entry(path, self._number(path), step)
        self._taken[place] = step
        self._writing.wait()  # rather than have two in memory
        files = {file_of(self._rank): self._collect(lambda part: part.own(self._rank))}
        manifest = None
        if self._rank == 0:
            files[SHARED] = self._collect(lambda part: part.shared())
            about = {name: part.about() for name, part in self.parts.items()}
            manifest = Manifest(step=step, workers=self._workers, about=about)
        refused = self._refused.get(place, frozenset())
        shapes = mx.util.is_np_shape()
        self._writing.begin(Contents(target, files, manifest, keep, refused, shapes))

    def restore(self, directory: PathLike, early: bool) -> Optional[int]:
        """Goes on from the newest snapshot that fits; see P3Worker.restore."""
        self.join()
        unfit: Dict[Entry, str] = {}
        fits = False
        while not fits:
            found = self._chosen(Path(directory), early, unfit)
            if found is None:
                return None
            target, manifest = found
            fits = self._prepare(target, manifest, early, unfit)
        is_own = self._rank < manifest.workers
        own_file = file_of(self._rank if is_own else 0)
        shared, own = [
            read_sealed(target.path / name, manifest.files[name]) for name in (SHARED, own_file)
        ]
        for name, part in self.parts.items():
            is_repeated = early and name == RandomStates.name
            if name in own and not is_repeated:  # not what a script has added since
                part.put_back(shared[name], own[name], is_own)
        if self._rank == 0 and manifest.workers != self._workers:
            say(
                f"{target.path} was taken of {manifest.workers} workers; this run has "
                f"{self._workers}, so that it goes on otherwise than that one would have"
            )
        newer = [one.number for one in complete(Path(directory)) if one.number > target.number]
        self._refused[os.path.abspath(directory)] = frozenset(newer)
        self._last.clear()
        self._first = manifest.step
        self._taken.clear()
        return manifest.step

    def join(self) -> None:
        """Waits until all is written; raises KVStoreError where the last could not be."""
        self._writing.join()

    def _collect(self, ask: Callable[[Part], Any]) -> Dict[str, Any]:
        return {name: ask(part) for name, part in self.parts.items()}

    def _number(self, directory: Path) -> int:
        """The next snapshot's, as rank 0 counts them."""
        place = os.path.abspath(directory)
        if place not in self._next:
            number, refused = -1, None
            if self._rank == 0:
                try:
                    directory.mkdir(parents=True, exist_ok=True)
                    number = next_number(directory)
                    remove_unfinished(directory)
                except OSError as error:
                    number = -1
                    refused = KVStoreError(
                        f"snapshots cannot be written to {directory}: {error.strerror}"
                    )
            told = int(self._hear([number], refused)[0])
            if told < 0:
                raise refused or RefusedByRank0Error(
                    f"worker 0 cannot write snapshots to {directory}, as it says"
                )
            self._next[place] = told
        number = self._next[place]
        self._next[place] += 1
        return number

    def _prepare(
        self, target: Entry, manifest: Manifest, early: bool, unfit: Dict[Entry, str]
    ) -> bool:
        """Makes what a script makes later, by which a snapshot may turn out to be another run's;
        whether rank 0 goes on from this one. If not, it is among the unfit."""
        why = ""
        try:
            for name, part in self.parts.items():
                part.prepare(manifest.about.get(name, {}))
            check_parts(manifest, self.parts, early)  # with what was made meanwhile
        except SnapshotError as error:
            why = str(error)
        fits = self._agree([float(not why)])[0] == 1
        if fits and why:
            raise SnapshotError(
                f"worker 0 goes on from {target.path}, which worker {self._rank} cannot: {why}"
            )
        if not fits:
            unfit[target] = why
        return fits

    def _chosen(
        self, directory: Path, early: bool, unfit: Dict[Entry, str]
    ) -> Optional[tuple[Entry, Manifest]]:
        """Rank 0's choice, as this worker sees it."""
        found, refused = None, None
        if self._rank == 0:
            try:
                found = choose(directory, self.parts, early, unfit)
            except SnapshotError as error:
                refused = error
        told = [0.0, 0.0, 0.0, 0.0]
        if found is not None:
            told = [1.0, found[0].number, found[0].step, found[1].number]
        elif refused is not None:
            told = [2.0, 0.0, 0.0, 0.0]
        kind, number, step, content = self._hear(told, refused)
        if kind == 0:
            self._expect_none(directory)
            return None
        if kind == 2:
            raise refused or RefusedByRank0Error(
                f"worker 0 can go on from no snapshot in {directory}, as it says"
            )
        if self._rank == 0:
            return found
        target = entry(directory, int(number), int(step))
        manifest = self._read_as_rank_0(target, content)
        return target, manifest

    def _hear(self, told: List[float], refused: Optional[Exception]) -> Any:
        """What rank 0 tells all workers, which is `told` there; and why, if it has to refuse."""
        try:
            return self._agree(told)
        except Exception:
            # The others have heard, and failed before this worker was through with telling them.
            if refused is not None:
                raise refused from None
            raise

    def _expect_none(self, directory: Path) -> None:
        """Raises SnapshotError where there are some after all: rank 0 would begin anew."""
        found = complete(directory)
        if found:
            raise SnapshotError(
                f"worker 0 finds no snapshot in {directory}; worker {self._rank} finds "
                f"{found[0].path}: all hosts must share the directory"
            )

    def _read_as_rank_0(self, target: Entry, content: float) -> Manifest:
        try:
            manifest = read_manifest(target.path)
        except SnapshotError as error:
            raise SnapshotError(
                f"worker 0 goes on from {target.path}; worker {self._rank} finds that {error}: "
                "all hosts must share the directory"
            ) from None
        if manifest.number != content:
            raise SnapshotError(
                f"worker 0 goes on from {target.path} of content {int(content):012x}; worker "
                f"{self._rank} finds {int(manifest.number):012x}: all hosts must share the "
                "directory"
            )
        return manifest
