"""Runs the Python blocks of documents, page by page: python tests/docs/run_blocks.py PAGE ...

A page's blocks follow each other in one namespace. It begins with what a reader has: a network
whose gradients are there, data, and `mx`. A traceback names the page and the line.
"""
from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
from mxnet import autograd, gluon

from tests.docs.documents import ROOT, code

sys.path.append(str(ROOT / "examples"))  # a reader has copied waiting.py

BATCH, FEATURES, CLASSES, EXAMPLES = 8, 4, 3, 48

# What would take long, and what stands for it: numbers of rounds and steps.
SHORT = {r"tau=100": "tau=2", r"rounds\(20\)": "rounds(2)", r"num_epoch=10": "num_epoch=1",
         r"range\(done \+ 1, 11\)": "range(done + 1, 3)", r"len\(loader\), 10\)": "len(loader), 2)"}


def make_net() -> Any:
    net = gluon.nn.Dense(CLASSES, in_units=FEATURES)
    net.initialize()
    return net


def namespace() -> dict[str, Any]:
    """What a page's blocks find."""
    images = mx.nd.random.normal(shape=(EXAMPLES, FEATURES))
    labels = mx.nd.array([i % CLASSES for i in range(EXAMPLES)])
    output = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=CLASSES)
    return {
        "mx": mx,
        "net": make_net(),
        "make_net": make_net,
        "images": images.asnumpy(),
        "labels": labels.asnumpy().astype(int),
        "dataset": gluon.data.ArrayDataset(images, labels),
        "train_data": mx.io.NDArrayIter(images, labels, BATCH),
        "module": mx.mod.Module(mx.sym.SoftmaxOutput(output, name="softmax")),
        "batch_size": BATCH,
    }


def run(page: Path) -> None:
    names = namespace()
    blocks = list(code(page, "python"))
    if not any("mx.kv.create" in block.text for block in blocks):
        store = mx.kv.create("p3")
        trainer = gluon.Trainer(names["net"].collect_params(), "sgd", {}, kvstore=store)
        names.update(store=store, trainer=trainer)
    for block in blocks:
        text = block.text
        for slow, short in SHORT.items():
            text = re.sub(slow, short, text)
        with autograd.record():
            loss = names["net"](mx.nd.array(names["images"])).square().sum()
        loss.backward()
        tree = ast.increment_lineno(ast.parse(text), block.line - 1)
        exec(compile(tree, str(page), "exec"), names)
    mx.nd.waitall()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run(Path(argument))
        print(f"ran {argument}")
