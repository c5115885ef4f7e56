"""Has scripts read their flags, and do no more; JSON gives the words of each command after python.

    python tests/docs/read_flags.py '[["benchmarks/codecs.py", "--repeats", "5"]]'

Prints a JSON list: for each command nothing, or why it is wrong. One process reads them all, folder
by folder, since most of the time goes into importing mxnet and what lies beside the scripts.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import json
import runpy
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import kvstore_ext  # noqa: F401 - before mxnet


class FlagsRead(BaseException):
    """Raised where a script would begin its work."""


def read_all(commands: list[list[str]]) -> list[str]:
    """What is wrong with each command."""

    def folder_of(number: int) -> Path:
        return Path(commands[number][0]).parent.resolve()

    found = [""] * len(commands)
    for folder, numbers in groupby(sorted(range(len(commands)), key=folder_of), folder_of):
        for number in numbers:
            found[number] = read(commands[number], folder)
        forget_modules(folder)
    return found


def read(words: list[str], folder: Path) -> str:
    """What is wrong with a command, whose script lies in the folder."""
    sys.argv, sys.path[0] = words, str(folder)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            runpy.run_path(words[0], run_name="__main__")
    except FlagsRead:
        return ""
    except SystemExit as error:
        return errors.getvalue() + ("" if error.code in (None, 0) else str(error.code))
    return "it reads no flags"


def forget_modules(folder: Path) -> None:
    """Scripts of different folders have modules of the same name beside them."""
    for name, module in list(sys.modules.items()):
        if folder in Path(getattr(module, "__file__", None) or "").resolve().parents:
            del sys.modules[name]


def main() -> None:
    parse_args = argparse.ArgumentParser.parse_args

    def stop_after(*arguments: Any, **others: Any) -> None:
        parse_args(*arguments, **others)
        raise FlagsRead

    commands = json.loads(sys.argv[1])
    argparse.ArgumentParser.parse_args = stop_after  # type: ignore
    print(json.dumps(read_all(commands)))


if __name__ == "__main__":
    main()
