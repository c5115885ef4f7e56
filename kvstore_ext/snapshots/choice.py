"""Which snapshot a run goes on from: the newest that is whole and fits."""
from __future__ import annotations

from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from ..notes import say
from .folder import Entry, complete
from .manifest import Manifest, read_manifest
from .part import Part, SnapshotError
from .sealed_files import check_sealed


def check_parts(manifest: Manifest, parts: Mapping[str, Part], early: bool) -> None:
    """Raises SnapshotError for a snapshot that a run of these parts cannot go on from; `early`, it
    may lack some yet."""
    for name in manifest.about:
        if name not in parts and not early:
            raise SnapshotError(
                f"it has the part {name!r}; this run has {', '.join(map(repr, parts))}"
            )
    for name, part in parts.items():
        about = manifest.about.get(name, {})
        missing = [] if early else part.missing(about)
        if missing:
            raise SnapshotError(f"it has the part {missing[0]!r} of {name}; this run has not")
        part.check(about)


def choose(
    directory: Path, parts: Mapping[str, Part], early: bool, unfit: Mapping[Entry, str]
) -> Optional[Tuple[Entry, Manifest]]:
    """The newest snapshot of a directory that these parts can go on from, or None where there was
    never one. Says on standard error what is wrong with newer ones.

    Parameters
    ----------
    directory, parts, early
        Where they are, and the run, which may lack parts yet if this is early.
    unfit
        What is wrong with those that have turned out to be another run's.

    Raises
    ------
    SnapshotError
        Where there are snapshots, and none of them is whole and fits.
    """
    refused: List[str] = []
    for entry in complete(directory):
        try:
            if entry in unfit:
                raise SnapshotError(unfit[entry])
            manifest = read_manifest(entry.path)
            check_parts(manifest, parts, early)
            for name, seal in manifest.files.items():
                check_sealed(entry.path / name, seal)
        except SnapshotError as error:
            refused.append(f"snapshot {entry.path} is not taken: {error}")
            continue
        for line in refused:
            say(f"{line}; the one before it is")
        return entry, manifest
    if refused:
        raise SnapshotError("; ".join(refused))
    return None
