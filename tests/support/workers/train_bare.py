"""A worker that trains several cases one after the other, by a store's own calls.

python train_bare.py STORE DIRECTORY CASE...: writes each case's parameters to
DIRECTORY/CASE-RANK.npz.
"""
from __future__ import annotations

import sys

import kvstore_ext  # noqa: F401 - makes the store's name known
import mxnet as mx

from tests.support import results
from tests.support.tasks.training import CASES, train_with_store


def main(name: str, directory: str, *cases: str) -> None:
    store = mx.kv.create(name)
    for number, case in enumerate(cases):
        if number > 0 and name == "p3":  # of MXNet's own a process has one, for all optimizers
            store = mx.kv.create(name)
        found = train_with_store(store, case, CASES[case])
        results.save(directory, case, store.rank, found)
    print("trained")


if __name__ == "__main__":
    main(*sys.argv[1:])
