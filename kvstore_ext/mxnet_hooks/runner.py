"""Runs scripts that know nothing of kvstore_ext: python -m kvstore_ext train.py --kv-store p3.

Importing the package, which happens before this, has registered the stores' names. What is left is
to give them further names, and to run the script; or what a server runs, in a server.
"""
from __future__ import annotations

import argparse
import re
from typing import Any, List, Tuple

from mxnet.kvstore import KVStoreBase

from .. import compression, server
from ..config import role_of_process
from ..spelling import did_you_mean
from . import as_main
from .store_names import spellings_of_ours


def main(arguments: List[str]) -> None:
    """Runs the script or module; in a server or scheduler, what python -m kvstore_ext.server runs.

    Exits with status 2 for arguments that are wrong, before anything has run.
    """
    found = _parse(arguments)
    if found.list:
        print(compression.describe())
        return
    target, rest = found.command[0], found.command[1:]
    if role_of_process() in ("server", "scheduler"):
        if not found.module:
            as_main.import_from_directory_of(target)  # where optimizers to trust may lie as well
        server.main([word for module in found.trust for word in ("--trust", module)])
        return
    for name, store in found.replace:
        KVStoreBase.kv_registry[name] = KVStoreBase.kv_registry[store]
    run = as_main.run_module if found.module else as_main.run_script
    run(target, rest)


def _parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m kvstore_ext",
        usage="%(prog)s [--replace NAME=STORE] [--trust MODULE] SCRIPT ... | -m MODULE ...\n"
        "       %(prog)s --list",
        description="Run a script or module in which mx.kv.create knows the stores of kvstore_ext.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    repeated: Any = {"action": "append", "default": []}
    about = "mx.kv.create(NAME) makes STORE; dist_sync=p3, say; may be repeated"
    add("--replace", type=_replacement, metavar="NAME=STORE", help=about, **repeated)
    about = "for servers: a module of optimizers that workers may send; may be repeated"
    add("--trust", metavar="MODULE", help=about, **repeated)
    add("--list", action="store_true", help="list ways to compress gradients, and their options")
    add("-m", dest="module", action="store_true", help="a module is run, as by python -m")
    add("command", nargs=argparse.REMAINDER, metavar="...", help="the script and its arguments")
    found = parser.parse_args(arguments)
    if found.command[:1] == ["--"]:
        del found.command[0]
    if not found.command and not found.list:
        parser.error(f"no {'module' if found.module else 'script'} to run")
    return found


def _replacement(text: str) -> Tuple[str, str]:
    """The two names in the form in which MXNet looks them up."""
    if not re.fullmatch(r"\w+=\w+", text):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed is NAME=STORE")
    name, store = text.lower().split("=")
    stores = [
        known
        for known, kind in KVStoreBase.kv_registry.items()
        if isinstance(kind, type) and kind.__module__.startswith("kvstore_ext.")
    ]
    if store not in stores:
        raise argparse.ArgumentTypeError(
            f"found '{text}', but there is no store '{store}'; allowed are {', '.join(stores)}"
            + did_you_mean(store, spellings_of_ours())
        )
    return name, store
