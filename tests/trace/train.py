"""A worker that trains a small network for seven steps; its keys have several slices."""
from __future__ import annotations

import kvstore_ext  # noqa: F401
import mxnet as mx
from mxnet import autograd, gluon

STEPS = 7

net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(40, activation="relu"), gluon.nn.Dense(50), gluon.nn.Dense(10))
net.initialize()
net.hybridize()
store = mx.kv.create("p3")
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=store)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
images, labels = mx.nd.ones((8, 100)), mx.nd.zeros((8,))
for _ in range(STEPS):
    with autograd.record():
        error = loss(net(images), labels)
    error.backward()
    trainer.step(8)
mx.nd.waitall()
