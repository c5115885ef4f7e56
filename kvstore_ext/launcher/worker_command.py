"""The command that a worker runs: where that is Python with a script or module, through the runner.

`python -u train.py` becomes `python -u -m kvstore_run train.py`, in which MXNet knows the stores of
kvstore_ext although train.py does not import it.
"""

from __future__ import annotations

import os
import re
from typing import Sequence

_RUNNER = "kvstore_run"
_OTHER_NAME = "kvstore_ext"  # of the same, by hand
_COMMAND = "kvstore-ext"  # the same again
# Python's options of one letter that take no value and do not matter to who reads the script.
_FLAGS = "bBdEiIOPqRsSuv"
_WITH_VALUE = "WX"


def through_runner(command: Sequence[str], replacements: Sequence[str]) -> list[str]:
    """Returns the command with the runner in it, unless Python runs code, its input or nothing.

    `replacements` are "NAME=STORE" for the runner. Raises ValueError where they could have no
    effect, as the command is another one.
    """
    options = [word for text in replacements for word in ("--replace", text)]
    if os.path.basename(command[0]) == _COMMAND:
        return [command[0], *options, *command[1:]]
    position = _end_of_options(command)
    if position is None:
        if replacements:
            raise ValueError(
                f"--replace: found the command '{command[0]}', allowed are {_COMMAND}, python, "
                f"python3 and python3.x with a script or -m; others run {_COMMAND} --replace by "
                "themselves"
            )
        return list(command)
    interpreter, rest = _separated(command, position)
    if rest[:2] in (["-m", _RUNNER], ["-m", _OTHER_NAME]):
        rest = rest[2:]
    elif rest[0].isidentifier():  # not a part of the runner's own, such as "report"
        rest = ["--", *rest]
    return [*interpreter, "-m", _RUNNER, *options, *rest]


def script_of(command: Sequence[str]) -> str | None:
    """Returns the file that Python would run; None where it runs a module, or is another program.
    """
    position = _end_of_options(command)
    if position is not None and command[position] == "--":
        position += 1
    if position is None or position >= len(command):
        return None
    return None if command[position].startswith("-") else command[position]


def is_python(program: str) -> bool:
    """Whether a program is an interpreter, by its name."""
    return re.fullmatch(r"python(3(\.\d+)?)?", os.path.basename(program)) is not None


def _end_of_options(command: Sequence[str]) -> int | None:
    """Returns the place of the script, of "--" or of what has -m; None for other commands."""
    if not is_python(command[0]):
        return None
    position = 1
    while position < len(command):
        word = command[position]
        if word == "--" or not word.startswith("-"):
            return position
        if word == "--check-hash-based-pycs":
            position += 2
            continue
        letters = word[1:].lstrip(_FLAGS)
        if letters.startswith("m"):
            return position
        if word == "-" or (letters and letters[0] not in _WITH_VALUE):
            return None
        position += 2 if len(letters) == 1 else 1
    return None


def _separated(command: Sequence[str], position: int) -> tuple[list[str], list[str]]:
    """Returns the interpreter with its options and what it runs, "-m" a word of its own."""
    interpreter, word = list(command[:position]), command[position]
    if word == "--" or not word.startswith("-"):
        return interpreter, list(command[position:])
    flags, _, module = word.partition("m")
    if flags != "-":
        interpreter.append(flags)
    return interpreter, ["-m", *([module] if module else []), *command[position + 1 :]]
