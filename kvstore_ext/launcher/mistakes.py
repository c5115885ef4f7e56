"""Command lines that cannot be what the user meant, and what that may have been."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from difflib import get_close_matches
from typing import Mapping, Sequence

from .store_options import option_names
from .worker_command import is_python, script_of

# Which of the programs on the PATH are looked at for a misspelt one.
_PROGRAMS = ("python", "python3", "bash", "sh", "env")
_STORE_OPTIONS = "KVSTORE_EXT_OPTIONS"


def check_command(command: Sequence[str], local: bool, path: str | None = None) -> None:
    """Raises ValueError where the first word is no program, but looks like something else.

    Where the workers run here (`local`), it has to be a program of this host, and the script has to
    be there; elsewhere it may be a program that only other hosts have. `path` is the workers' PATH;
    None: the launcher's own.
    """
    first = command[0]
    if shutil.which(first, path=path) is None:
        meant = _meant_command(first, command[1:], local)
        if meant:
            raise ValueError(f"'{first}' is no program; did you mean: {meant}")
        if local:
            raise ValueError(f"'{first}' is no program here")
    script = script_of(command)
    if local and script is not None and not os.path.exists(script):
        directory, name = os.path.split(script)
        near = get_close_matches(name, _scripts_in(directory), n=1)
        meant = f"; did you mean: {os.path.join(directory, near[0])}" if near else ""
        raise ValueError(f"there is no script '{script}' in {os.getcwd()}{meant}")


def check_store_options(environment: Mapping[str, str]) -> None:
    """Raises ValueError where the stores' options in a process's environment cannot be read, or
    one of them is none of any store's.

    What values they may have only the stores know.
    """
    text = environment.get(_STORE_OPTIONS)
    if text is None:
        return
    try:
        options = json.loads(text)
        why = ""
    except ValueError as error:
        options, why = None, f": {error}"
    if not isinstance(options, dict):
        raise ValueError(f"{_STORE_OPTIONS} is {text!r}, which is no JSON object{why}")
    known = option_names()
    for name in options:
        if known and name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"did you mean {near[0]!r}?" if near else "kvstore-ext --list has all"
            raise ValueError(f"{_STORE_OPTIONS}: there is no option {name!r}; {meant}")


def _meant_command(first: str, others: Sequence[str], local: bool) -> str:
    """Returns what may have been meant by the words of a command, "" where nothing comes near."""
    rest = shlex.join(others)
    meant = ""
    if " " in first and not rest and not os.path.exists(first):
        meant = first
    elif first == "kvstore-ext":  # of an environment that is not activated
        meant = f"python -m kvstore_run {rest}"
    elif first.endswith(".py"):
        meant = f"python {shlex.quote(first)} {rest}"
    elif re.match(r"[A-Za-z_][A-Za-z0-9_]*=", first):
        meant = f"--env {shlex.quote(first)} {rest}"
    elif local or not is_python(first):  # other hosts may have another one
        near = get_close_matches(first, filter(shutil.which, _PROGRAMS), n=1)
        meant = f"{near[0]} {rest}" if near else ""
    return meant.strip()


def _scripts_in(directory: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory or ".") if name.endswith(".py")]
    except OSError:
        return []
