"""What a snapshot says of itself. Its manifest is written last: without one there is none."""
from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict

from ..version import __version__
from .part import About, SnapshotError
from .sealed_files import Seal, write_whole

FORMAT = 2
_NAME = "manifest.json"
_SEAL = "sha256 of all other fields"


@dataclass(frozen=True)
class Manifest:
    """The manifest of one snapshot.

    Attributes
    ----------
    step
        After how many steps of the run it was taken.
    workers
        How many there were.
    about
        By part, what must be alike in a run that goes on.
    files
        By name, the bytes and the SHA-256 of each file.
    format, version
        Of the files, and of the kvstore_ext that wrote them.
    """

    step: int
    workers: int
    about: Dict[str, About]
    files: Dict[str, Seal] = field(default_factory=dict)
    format: int = FORMAT
    version: str = __version__

    def write(self, directory: Path) -> None:
        """Writes it into a snapshot's directory, which makes that a snapshot."""
        fields = asdict(self)
        text = json.dumps({**fields, _SEAL: _digest(fields)}, indent=1)
        write_whole(directory / _NAME, lambda file: file.write(text.encode()))

    @property
    def number(self) -> float:
        """A number that only a manifest of the same content has, which a float64 can carry."""
        return float(int(_digest(asdict(self))[:12], 16))


def is_there(directory: Path) -> bool:
    """Whether a snapshot in this directory has been completed."""
    return (directory / _NAME).exists()


def remove_manifest(directory: Path) -> None:
    """Makes it none, so that whoever is ended while the rest goes leaves no half of a snapshot."""
    (directory / _NAME).unlink(missing_ok=True)


def read_manifest(directory: Path) -> Manifest:
    """That of a snapshot; raises SnapshotError for a damaged one, or another format."""
    try:
        fields: Any = json.loads((directory / _NAME).read_bytes())
        found = fields.pop(_SEAL)
        if fields["format"] != FORMAT:
            writer = fields.get("version", "before 0.1.0")
            raise SnapshotError(
                f"it has format {fields['format']}, of kvstore_ext {writer}; this is kvstore_ext "
                f"{__version__}, which reads format {FORMAT}"
            )
        expected = _digest(fields)
        if found != expected:
            raise SnapshotError(f"{_NAME} has SHA-256 {expected}; it says {found}")
        files = {name: Seal(*seal) for name, seal in fields.pop("files").items()}
        return Manifest(files=files, **fields)
    except OSError as error:
        raise SnapshotError(f"{_NAME} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SnapshotError(f"{_NAME} is no manifest: {type(error).__name__}: {error}") from None


def _digest(fields: Dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
