"""A worker that trains by gluon.Trainer or Module: python train_interface.py STORE DIRECTORY WHAT.

Writes the parameters to DIRECTORY/RANK.npz.
"""
from __future__ import annotations

import sys

import kvstore_ext  # noqa: F401 - makes the store's name known
import mxnet as mx
import numpy as np
from interfaces import train_with_module, train_with_trainer


def main(name: str, directory: str, what: str, devices: str, *flags: str) -> None:
    store = mx.kv.create(name)
    if what == "module":
        found = train_with_module(store, store.rank, int(devices))
    else:
        on_servers, multiplied = ("on servers" in flags), ("multiplied" in flags)
        place = (store.rank, store.num_workers)
        found = train_with_trainer(store, *place, int(devices), on_servers, multiplied)
    np.savez(f"{directory}/{store.rank}.npz", **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
