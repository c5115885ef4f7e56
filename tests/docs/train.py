"""What the documents' `python train.py` stands for: a script that has got the two lines."""
from __future__ import annotations

import argparse

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
from mxnet import autograd, gluon

parser = argparse.ArgumentParser()
parser.add_argument("--kv-store", default="p3")
args = parser.parse_args()

store = mx.kv.create(args.kv_store)
net = gluon.nn.Dense(2, in_units=3)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
for _ in range(2):
    with autograd.record():
        loss = net(mx.nd.ones((4, 3))).square().sum()
    loss.backward()
    trainer.step(4 * store.num_workers)
print(f"trained by {type(store).__name__}, loss {loss.asscalar():.3f}")
