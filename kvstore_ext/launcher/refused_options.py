"""Options that the launcher does not take, each of which says in a line what to type instead."""

from __future__ import annotations

import argparse
from typing import Any, Mapping, NoReturn


def add_refused(parser: argparse.ArgumentParser, whose: str, remedies: Mapping[str, str]) -> None:
    """Has the parser end with a line for each of these options: whose it is, and its remedy."""

    class Refused(argparse.Action):
        def __call__(
            self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None
        ) -> NoReturn:
            parser.error(f"{option} is an option of {whose} {remedies[option]}")

    for name in remedies:
        parser.add_argument(name, nargs="?", action=Refused, help=argparse.SUPPRESS)
