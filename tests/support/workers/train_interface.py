"""A worker that trains by gluon.Trainer or Module: train_interface.py STORE DIRECTORY TASK ...

A task is an interface, a number of devices and flags, with colons between them. Each is trained
with a store or keys of its own. Writes the parameters to DIRECTORY/TASK-RANK.npz.
"""
from __future__ import annotations

import os
import sys

import kvstore_ext  # noqa: F401 - makes the store's name known
import mxnet as mx

from tests.support import results
from tests.support.tasks.interfaces import train_with_module, train_with_trainer
from tests.support.tasks.own_keys import OwnKeys


def main(name: str, directory: str, *tasks: str) -> None:
    stock = mx.kv.create(name) if name == "dist_sync" else None
    for task in tasks:
        store = OwnKeys(stock, task) if stock else mx.kv.create(name)
        interface, devices, *flags = task.split(":")
        on_servers, multiplied = ("on servers" in flags), ("multiplied" in flags)
        if interface == "module":
            os.environ["MXNET_UPDATE_ON_KVSTORE"] = str(int(on_servers))
            found = train_with_module(store, store.rank, int(devices))
        else:
            place = (store.rank, store.num_workers)
            found = train_with_trainer(store, *place, int(devices), on_servers, multiplied)
        results.save(directory, task, store.rank, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
