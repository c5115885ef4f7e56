"""Which snapshot a run goes on from: the newest that is whole and fits."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterable, List, Optional, Tuple

from .folder import Entry, complete
from .manifest import Manifest, read_manifest
from .part import Part, SnapshotError
from .sealed_files import check_sealed


def choose(directory: Path, parts: Iterable[Part]) -> Optional[Tuple[Entry, Manifest]]:
    """The newest snapshot of a directory that these parts can go on from, or None where there was
    never one. Says on standard error what is wrong with newer ones.

    Raises
    ------
    SnapshotError
        Where there are snapshots, and none of them is whole and fits.
    """
    refused: List[str] = []
    for entry in complete(directory):
        try:
            manifest = read_manifest(entry.path)
            for part in parts:
                part.check(manifest.about.get(part.name, {}))
            for name, seal in manifest.files.items():
                check_sealed(entry.path / name, seal)
        except SnapshotError as error:
            refused.append(f"snapshot {entry.path} is not taken: {error}")
            continue
        for line in refused:
            print(f"kvstore_ext: {line}; the one before it is", file=sys.stderr, flush=True)
        return entry, manifest
    if refused:
        raise SnapshotError("; ".join(refused))
    return None
