#!/usr/bin/env python3
"""What layers cost in a trace: processor time of as many as ResNet-50 has, traced and not, in turn.

    OMP_NUM_THREADS=1 python benchmarks/layer_cost.py

A network with ResNet-50's layers, but of few channels, trains in each way that MXNet has with one
small image, so that what is noted of its layers stands out. Nothing is pushed. Beside the cost of a
step stands what that is of a step of the replay's worker, which computes ResNet-50 for 32 images as
long as on a Quadro P4000.
"""
from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median
from typing import Any, Callable, Dict

import kvstore_ext  # noqa: F401
import mxnet as mx
from kvstore_ext.predict.network import load
from kvstore_ext.trace.events import Kind
from kvstore_ext.trace.reading import read
from mxnet import autograd
from mxnet.gluon.model_zoo.vision.resnet import BottleneckV1, ResNetV1

SHAPE = (1, 3, 32, 32)
BLOCKS, CHANNELS = (3, 4, 6, 3), (4, 8, 12, 16, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=40)
    repeats = parser.parse_args().repeats
    step = load("resnet50").compute
    store = mx.kv.create("p3")
    for name, train in ways().items():
        processor_time(train)
        plain, traced, events = [], [], 0
        for _ in range(repeats):
            plain.append(processor_time(train))
            with tempfile.TemporaryDirectory() as directory:
                store.start_trace(directory)
                traced.append(processor_time(train))
                store.stop_trace()
                (worker,) = read(directory).workers
                events = len(worker.of_kind(Kind.FORWARD, Kind.BACKWARD))
        print(told(name, events, median(plain), median(traced) - median(plain), step))


def told(name: str, events: int, plain: float, more: float, step: float) -> str:
    """What is said of a way to train.

    A layer has an event in each pass that it is told of.
    """
    return (
        f"{name}: {events} events a step, {1e3 * plain:.1f} ms of processor time and "
        f"{1e3 * more:.1f} ms more: {100 * more / step:.2f} % of {1e3 * step:.0f} ms"
    )


def ways() -> Dict[str, Callable[[], None]]:
    """A step of each way to train it."""
    return {
        "not hybridized": gluon_step(),
        "hybridized": gluon_step(active=True),
        "static_shape": gluon_step(static_alloc=True, static_shape=True),
        "Module": module_step(),
    }


def gluon_step(**hybridized: bool) -> Callable[[], None]:
    net = ResNetV1(BottleneckV1, BLOCKS, CHANNELS)
    net.initialize()
    if hybridized:
        net.hybridize(**hybridized)
    image = mx.nd.ones(SHAPE)

    def step() -> None:
        with autograd.record():
            error = net(image).sum()
        error.backward()

    return step


def module_step() -> Callable[[], None]:
    label = ("softmax_label", SHAPE[:1])
    outputs = ResNetV1(BottleneckV1, BLOCKS, CHANNELS)(mx.sym.var("data"))
    module = mx.mod.Module(mx.sym.SoftmaxOutput(outputs, name="softmax"))
    module.bind([("data", SHAPE)], [label])
    module.init_params()
    batch: Any = mx.io.DataBatch([mx.nd.ones(SHAPE)], [mx.nd.zeros(SHAPE[:1])])
    return lambda: module.forward_backward(batch)


def processor_time(step: Callable[[], None]) -> float:
    """Seconds of a step, of all threads."""
    mx.nd.waitall()
    begun = time.process_time()
    step()
    mx.nd.waitall()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
