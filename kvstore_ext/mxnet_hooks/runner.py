"""Runs scripts that know nothing of kvstore_ext: kvstore-ext train.py --kv-store p3.

kvstore_run.py has read the command line and imported the package, which registers the stores'
names. What is left is to give them further names, and to run the script; or what a server runs, in
a server.
"""
from __future__ import annotations

import argparse
import sys
from typing import List, Tuple

from mxnet.kvstore import KVStoreBase

from ..config import role_of_process
from ..launcher.output import show
from ..server import process
from ..spelling import did_you_mean
from ..store.shutdown import tell_launcher_of
from . import as_main, joining, listing
from .automatic_snapshots import AutomaticSnapshots
from .store_names import spellings_of_ours


def main(found: argparse.Namespace) -> None:
    """Runs the script or module; in a server or scheduler, what kvstore-ext --serve runs.

    `found` is what kvstore_run.py has read from the command line. Exits with status 2 where a name
    is to be replaced by that of no store, before anything has run.
    """
    if found.list:
        show(listing.everything())
        return
    target, rest = (found.command or [""])[0], found.command[1:]
    if found.serve or role_of_process() in ("server", "scheduler"):
        if not found.module and target:
            as_main.import_from_directory_of(target)  # where optimizers to trust may lie as well
        process.main([word for module in found.trust for word in ("--trust", module)])
        return
    _replace(found.replace)
    snapshots = AutomaticSnapshots(found.snapshot, found.every) if found.snapshot else None
    if snapshots:
        snapshots.begin()
    if found.join:
        joining.join_where_batches_end()
    run = as_main.run_module if found.module else as_main.run_script
    try:
        run(target, rest)
    except Exception as error:
        tell_launcher_of(error)
        raise
    finally:
        if snapshots:
            snapshots.conclude()


def _replace(replacements: List[Tuple[str, str]]) -> None:
    """Has mx.kv.create(NAME) make STORE, for each (NAME, STORE)."""
    stores = [
        known
        for known, kind in KVStoreBase.kv_registry.items()
        if isinstance(kind, type) and kind.__module__.startswith("kvstore_ext.")
    ]
    for name, store in replacements:
        if store not in stores:
            print(
                f"kvstore-ext: error: argument --replace: found '{name}={store}', but there is no "
                f"store '{store}'; allowed are {', '.join(stores)}"
                + did_you_mean(store, spellings_of_ours()),
                file=sys.stderr,
            )
            sys.exit(2)
    for name, store in replacements:
        KVStoreBase.kv_registry[name] = KVStoreBase.kv_registry[store]
