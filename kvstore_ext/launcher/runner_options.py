"""Options of kvstore-ext, which workers run: given to the launcher, each says where it belongs."""

from __future__ import annotations

import argparse

from .refused_options import add_refused

# What the command line then looks like, by option. The launcher takes --replace and --trust itself.
OF_RUNNER = {
    "--join": "kvstore-launch ... kvstore-ext --join train.py",
    "--snapshot": "kvstore-launch ... kvstore-ext --snapshot DIR train.py",
    "--every": "kvstore-launch ... kvstore-ext --snapshot DIR --every STEPS train.py",
    "--serve": "kvstore-ext --serve, which the launcher has servers run by itself",
    "--list": "kvstore-ext --list",
    "--check": "kvstore-ext --check",
}


def add_runners(parser: argparse.ArgumentParser) -> None:
    """Has the parser end with a line for each of these options."""
    add_refused(parser, "kvstore-ext:", OF_RUNNER)
