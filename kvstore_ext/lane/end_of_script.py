"""How a script ends once its process was told to: at once, or after last snapshots."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, Tuple

from ..launch_reports import report
from ..notes import say
from ..protocol.end_signal import exit_as_told, was_told

BETWEEN_LOOKS = 0.2  # seconds, at whether the process was told


class EndOfScript:
    """A worker's part, whoever was told.

    Parameters
    ----------
    rank
        The worker's.

    Attributes
    ----------
    in_order
        Whether the job ends here and now, as it was told to.
    """

    def __init__(self, rank: int) -> None:
        self.in_order = False
        self._rank = rank
        self._held_back = False  # the script is not to end where it is
        # By open store and directory, after which step the script was there, and what takes one.
        self._snapshots: Dict[Tuple[Any, str], Tuple[int, Callable[[], object]]] = {}

    def offer(self, store: Any, directory: str, step: int, take: Callable[[], object]) -> None:
        """Has the job end with a snapshot of a store in a directory: `take` takes it at once.

        Directories of the store that the script has not come back to for more than a step are
        forgotten, such as one for each epoch.
        """
        others = {
            key: (at, other)
            for key, (at, other) in self._snapshots.items()
            if key != (store, directory) and (key[0] != store or at >= step - 1)
        }
        self._snapshots = {(store, directory): (step, take), **others}

    def forget(self, store: Any) -> None:
        """Takes no snapshots of a store any more."""
        self._snapshots = {key: each for key, each in self._snapshots.items() if key[0] != store}

    def stop(self, seconds: float) -> None:
        """Takes no part any more, as a lane is closed; waits so long at most for what goes on
        beside the script."""
        raise NotImplementedError

    def comes_to_end(self) -> bool:
        """Counts a step after which all workers could take a snapshot; whether the job ends with
        it."""
        raise NotImplementedError

    def end(self, step: int, directory: Any) -> None:
        """Takes snapshots, the one that was offered last first, and ends the script."""
        for _, take in list(self._snapshots.values()):
            take()
        if self._rank == 0:
            report(snapshot=f"after step {step}, with a snapshot in {directory}")
            say(f"the job ends after step {step}, with a snapshot in {directory}")
        exit_as_told()

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Has the script end behind this block, where its process is told to meanwhile: for a call
        that is not to be left half done, and that ends with an error if the job does."""
        if threading.current_thread() is not threading.main_thread():
            yield  # nobody here would hear what the main thread is told
            return
        before = was_told()
        self._held_back = True
        try:
            yield
        finally:
            self._held_back = False
        if was_told() and not before:
            self._on_main()

    def _on_main(self) -> None:
        """Ends the script, unless it is to come to a snapshot, has ended with one, or is held back.
        """
        waits = self._snapshots and not self._is_over()
        if not waits and not self.in_order and not self._held_back:
            exit_as_told()

    def _is_over(self) -> bool:
        """Whether the job can come to no snapshot any more."""
        raise NotImplementedError
