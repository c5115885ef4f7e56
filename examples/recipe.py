"""Recipes: JSON files that hold the flags of an experiment.

    python examples/train_image.py --recipe examples/recipes/p3-figure-11.json --arm dgc

A field is a flag's name with underscores, and its value the flag's. Besides there are:

- stands_for: the table or figure of the paper;
- workers: how many there have to be;
- store_options: what KVSTORE_EXT_OPTIONS has to hold, but for defaults, if the store is one that
  servers serve; it may hold other options as well;
- arms: by name, the fields in which the rows of that table differ. --arm names the one that trains.

An arm's fields override those that all share, and flags on the command line override both.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

OTHER_FIELDS = ("stands_for", "workers", "store_options", "arms")


class _RefusedError(Exception):
    """What argparse says of a flag."""


def parse_arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments, --recipe's included; `workers` is 0 without one. Ends where it is wrong."""
    parser.add_argument("--recipe", metavar="FILE", help="flags of an experiment; see recipe.py")
    parser.add_argument("--arm", metavar="NAME", help="which of the recipe's arms")
    parser.allow_abbrev = False  # or a short form of --recipe would be taken, and not be read
    only_recipe = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    only_recipe.add_argument("--recipe")
    only_recipe.add_argument("--arm")
    chosen = only_recipe.parse_known_args()[0]
    if chosen.arm and not chosen.recipe:
        sys.exit(f"--arm {chosen.arm} needs --recipe, the file that has the arm")
    flags: list[str] = []
    workers = 0
    try:
        if chosen.recipe:
            flags, workers = read_recipe(chosen.recipe, parser, chosen.arm)
    except (OSError, ValueError) as error:
        sys.exit(f"--recipe: {error}")
    args = parser.parse_args([*flags, *sys.argv[1:]])
    args.workers = workers
    return args


def read_recipe(
    path: str, parser: argparse.ArgumentParser, arm: str | None = None
) -> tuple[list[str], int]:
    """The flags of a recipe, or of one of its arms, and its number of workers (0: any).

    Sets KVSTORE_EXT_OPTIONS where it is not set.

    Raises
    ------
    ValueError
        It is no JSON object, it has a field that is no flag or a value that the flag
        does not admit, it has no such arm or arms of which none is named, or
        KVSTORE_EXT_OPTIONS differs from its `store_options`; FILE:LINE says where.
    OSError
        The file cannot be read.
    """
    text, recipe = _read_json(path)
    known = {action.dest: action for action in parser._actions
             if action.option_strings and action.dest not in ("help", "recipe", "arm")}
    flags = []
    fields = _fields_of(recipe, arm, text, path)
    for field, (value, line) in fields.items():
        where = f"{path}:{line}"
        if field == "workers" and (type(value) is not int or value < 1):
            raise ValueError(f"{where}: workers is {value!r}; it must be an integer of at least 1")
        if field == "store_options":
            _settle_options(value, where)
        if field in OTHER_FIELDS:
            continue
        if field not in known:
            allowed = ", ".join(sorted([*known, *OTHER_FIELDS]))
            raise ValueError(f"{where}: unknown field {field!r}; the fields allowed are {allowed}")
        flags += _flag(known[field], value, where)
    return flags, fields["workers"][0] if "workers" in fields else 0


def _read_json(path: str) -> tuple[str, dict[str, Any]]:
    """A recipe's text and the object in it."""
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8")
        recipe = json.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{line}: not UTF-8: byte {data[error.start]:#04x}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(recipe, dict):
        raise ValueError(f"{path}:1: a recipe is a JSON object, this is a {type(recipe).__name__}")
    return text, recipe


def _fields_of(
    recipe: dict[str, Any], arm: str | None, text: str, path: str
) -> dict[str, tuple[Any, int]]:
    """By name the fields that hold for an arm: their values, and the lines where they stand."""
    fields = {field: (value, _line(text, field)) for field, value in recipe.items()}
    arms, line = fields.get("arms", ({}, 1))
    if not isinstance(arms, dict) or not all(isinstance(own, dict) for own in arms.values()):
        raise ValueError(f"{path}:{line}: arms is {arms!r}; it must be an object of objects")
    if arm is None and arms:
        raise ValueError(f"{path}:{line}: name one of its arms with --arm: {', '.join(arms)}")
    if arm is not None and arm not in arms:
        allowed = ", ".join(arms) or "none, it has no arms"
        raise ValueError(f"{path}:{line}: --arm is {arm!r}; the arms allowed are {allowed}")
    if arm is not None:
        # Its own fields stand after its name, which stands after "arms".
        begin = _place(text, arm, _place(text, "arms"))
        for field, value in arms[arm].items():
            fields[field] = value, _line(text, field, begin)
    return fields


def check_workers(workers: int, present: int) -> None:
    """Ends where a recipe wants another number of workers."""
    if workers not in (0, present):
        sys.exit(f"--recipe: it is for {workers} workers, and there are {present}; start it with "
                 f"tools/launch.py -n {workers}")


def _place(text: str, field: str, begin: int = 0) -> int:
    """Where a field's name stands before a colon, after `begin`; 0 where it does not."""
    name = re.compile(re.escape(json.dumps(field, ensure_ascii=False)) + r"\s*:")
    found = name.search(text, begin)
    return found.start() if found else 0


def _line(text: str, field: str, begin: int = 0) -> int:
    """The line of a field of a JSON object."""
    return text.count("\n", 0, _place(text, field, begin)) + 1


def _flag(action: argparse.Action, value: Any, where: str) -> list[str]:
    """A flag and its value, as a command line has them."""
    name = action.option_strings[0]
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ValueError(f"{where}: {action.dest} is {value!r}; it must be true or false")
        return [name] if value else []
    words = value if isinstance(value, str) else json.dumps(value)
    check = _Checker()
    check._add_action(action)
    try:
        check.parse_args([f"{name}={words}"])
    except _RefusedError as error:
        raise ValueError(f"{where}: {error}") from None
    return [f"{name}={words}"]


class _Checker(argparse.ArgumentParser):
    """A parser that raises what it would print."""

    def __init__(self) -> None:
        super().__init__(add_help=False)

    def error(self, message: str) -> NoReturn:
        raise _RefusedError(message)


def _settle_options(options: Any, where: str) -> None:
    """Servers read the options of stores from their own environment, so it must hold them, or leave
    out those that are the defaults."""
    if os.environ.get("DMLC_ROLE") in ("server", "scheduler"):
        return  # importing mxnet is all that MXNet's own do; workers look at the options
    from kvstore_ext.compression import option_names
    from kvstore_ext.config import Options, environment_options
    from kvstore_ext.errors import OptionError

    if not isinstance(options, dict):
        raise ValueError(f"{where}: store_options is {options!r}; it must be an object")
    try:
        Options.from_dict(options, option_names())
        present = environment_options()
    except OptionError as error:
        raise ValueError(f"{where}: {error}") from None
    text = os.environ.get("KVSTORE_EXT_OPTIONS")
    if text is None and "DMLC_ROLE" not in os.environ:
        os.environ["KVSTORE_EXT_OPTIONS"] = json.dumps(options)
        return
    held = {**asdict(Options()), **present}
    if any(held.get(name) != value for name, value in options.items()):
        needed = json.dumps({**present, **options})
        raise ValueError(f"{where}: servers need the options too; start the job with "
                         f"KVSTORE_EXT_OPTIONS='{needed}', not {text!r}")
