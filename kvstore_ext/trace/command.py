"""What commands on traces have in common: what they read, what they write, and errors."""
from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager
from typing import Iterator, Tuple, Type


def parser_of(name: str, description: str, writes: str, about: str = "") -> argparse.ArgumentParser:
    """The options that they all have; `output_of` has the file.

    Parameters
    ----------
    name
        The command's, behind kvstore-ext.
    writes
        The file that it makes in the directory unless -o says otherwise.
    about
        What else there is to know of that file.
    """
    parser = argparse.ArgumentParser(
        prog=f"kvstore-ext {name}", description=description, allow_abbrev=False
    )
    parser.add_argument("directory", metavar="DIR", help="what kvstore-launch --trace was given")
    about = "; ".join(text for text in (f"default: DIR/{writes}", about) if text)
    parser.add_argument("-o", "--output", metavar="FILE", help=about)
    parser.set_defaults(writes=writes)
    return parser


def output_of(found: argparse.Namespace) -> str:
    """The path of the file that a command is to write."""
    return str(found.output or os.path.join(found.directory, found.writes))


@contextmanager
def errors_in_one_line(name: str, *errors: Type[Exception]) -> Iterator[None]:
    """Ends the process with status 1 and one line where such an error is raised, or OSError."""
    kinds: Tuple[Type[Exception], ...] = (OSError, *errors)
    try:
        yield
    except kinds as error:
        sys.exit(f"kvstore-ext {name}: {error}")
