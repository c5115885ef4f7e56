"""A worker that trains a network with Slim-DP and gluon.Trainer: train_slim_network.py DIRECTORY
OPTIONS ...

Options are JSON, and each have a store of their own. The parameters that are trained go to
DIRECTORY/STORE-RANK.npz, by their keys: the worker's own in the end, and the global ones.
"""
from __future__ import annotations

import json
import sys

import kvstore_ext  # noqa: F401 - makes the stores' names known
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

from tests.support import results
from tests.support.tasks.training import BATCH, make_batch, make_network

STEPS = 24
OPTIMIZER = {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-3}


def make_normalised_network() -> nn.HybridSequential:
    """training.py's behind a batch normalisation, two of whose parameters have no gradients."""
    network = nn.HybridSequential(prefix="all_")
    with network.name_scope():
        network.add(nn.BatchNorm(in_channels=1), make_network())
    network[0].initialize()
    return network


def train(trainer: gluon.Trainer, network: gluon.Block, rank: int) -> None:
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    for step in range(STEPS):
        images, labels = make_batch(step, rank)
        with autograd.record():
            loss = cross_entropy(network(images), labels)
        loss.backward()
        trainer.step(BATCH)


def main(directory: str, *all_options: str) -> None:
    for number, options in enumerate(all_options):
        network = make_normalised_network()
        store = mx.kv.create("p3")
        store.set_gradient_compression({"type": "slim_dp", **json.loads(options)})
        parameters = network.collect_params()
        trainer = gluon.Trainer(parameters, "sgd", OPTIMIZER, store, update_on_kvstore=True)
        train(trainer, network, store.rank)
        found = {}
        for key, (_, parameter) in enumerate(sorted(parameters.items())):
            if parameter.grad_req == "null":
                continue
            found[f"local-{key}"] = parameter.data().asnumpy()
            store.pull(key, out=parameter.data())
            found[f"global-{key}"] = parameter.data().asnumpy()
        results.save(directory, number, store.rank, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
