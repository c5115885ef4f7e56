"""Train an image classifier on data of your own, on one machine or over a cluster.

A copy of this file is where to begin: it needs nothing of what lies beside it, and reads from top
to bottom. The data are a folder, either of images in one folder for each class, or of two arrays:

    flowers/daisy/anything.jpg          digits/images.npy    uint8, (n, height, width, channels)
    flowers/tulip/anything.png          digits/labels.npy    integers from 0, (n,)

    python examples/train_own.py flowers
    python tools/launch.py -n 2 -s 2 python examples/train_own.py flowers

Every worker reads the whole folder, which has to fit into its memory, and trains on its share, on a
GPU where MXNet sees one.
"""
from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

parser = argparse.ArgumentParser(description="Train an image classifier on data of your own.")
parser.add_argument("data", type=Path, help="the folder")
parser.add_argument("--size", type=int, default=32, help="images of files become so wide and high")
parser.add_argument("--held-out", type=float, default=0.2, help="share to validate on")
parser.add_argument("--kv-store", default="p3",
                    help="a store of kvstore_ext; outside a launched job it has one worker")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch-size", type=int, default=64,
                    help="images in a step, over all workers")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate")
parser.add_argument("--save", default="own.params", metavar="FILE", help="for the parameters")
args = parser.parse_args()
if min(args.epochs, args.batch_size) < 1 or not 0 < args.held_out < 1:
    parser.error("--epochs and --batch-size must be at least 1, and --held-out between 0 and 1")
os.makedirs(os.path.dirname(args.save) or os.curdir, exist_ok=True)  # while nothing is lost yet

# The device: a GPU where there are any, of several workers on a host each its own if they suffice.
own, gpus = int(os.environ.get("KVSTORE_EXT_LOCAL_RANK", "0")), mx.context.num_gpus()
device = mx.gpu(own % gpus) if gpus else mx.cpu()


# The data: images (n, channels, height, width) as uint8, and labels (n,) from 0.

def read_images(folder: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """With the number of classes, whose folders are numbered in the order of their names."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    images, labels = [], []
    for label, path in enumerate(classes):
        for file in sorted(path.iterdir()):
            if file.suffix.lower() not in (".jpg", ".jpeg", ".png", ".bmp"):
                continue
            image = mx.image.imread(str(file))  # (height, width, 3)
            images.append(mx.image.imresize(image, args.size, args.size).asnumpy())
            labels.append(label)
    return np.array(images), np.array(labels), len(classes)


def read_arrays(folder: Path) -> tuple[np.ndarray, np.ndarray, int]:
    images, labels = np.load(folder / "images.npy"), np.load(folder / "labels.npy")
    if images.ndim != 4 or labels.shape != images.shape[:1]:
        sys.exit(f"images.npy is {images.shape} and labels.npy {labels.shape}; they must be (n, "
                 "height, width, channels) and (n,)")
    if len(labels) and labels.min() < 0:
        sys.exit(f"labels.npy has labels from {labels.min()}; they must be classes, from 0")
    return images, labels, int(labels.max()) + 1


if not args.data.is_dir():
    sys.exit(f"{args.data} is no folder")
read = read_arrays if (args.data / "images.npy").exists() else read_images
images, labels, classes = read(args.data)
if classes < 2:
    sys.exit(f"{args.data} has images of {classes} classes: it needs a folder for each of at least "
             "two, or images.npy and labels.npy")
if len(images) < 2:
    sys.exit(f"{args.data} has {len(images)} images: it needs some to train on, others to test; it "
             "reads .jpg, .jpeg, .png and .bmp")
images = images.transpose(0, 3, 1, 2)

# All workers split alike. Whoever trains has to see the same order as the others.
order = np.random.RandomState(0).permutation(len(images))
count = max(1, int(args.held_out * len(images)))
held_out, training = order[:count], order[count:]
some = images[training[:1000]].astype(np.float32)
mean, deviation = some.mean(), some.std() + 1e-6


def to_batch(numbers: np.ndarray) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    scaled = (images[numbers] - mean) / deviation
    return mx.nd.array(scaled, ctx=device), mx.nd.array(labels[numbers], ctx=device)


# The store. In a launched job this waits until all workers and servers have come.
store = mx.kv.create(args.kv_store)
if store.type.endswith("slim_dp"):
    sys.exit("--kv-store slim_dp: its workers have models of their own, and steps of their own "
             "batches; train_image.py trains with it")
if args.batch_size % store.num_workers:
    sys.exit(f"--batch-size {args.batch_size} does not divide by {store.num_workers} workers")


def batches(epoch: int) -> np.ndarray:
    """The numbers of this worker's images, a row a step. Every worker gets as many rows, or the
    others would wait for it: the order is continued from its start to fill whole batches."""
    shuffled = np.random.RandomState(epoch).permutation(training)
    steps = -(-len(shuffled) // args.batch_size)
    share = np.resize(shuffled, steps * args.batch_size)[store.rank::store.num_workers]
    return share.reshape(steps, -1)


# The model: put yours here. All workers begin with rank 0's parameters.
net = nn.HybridSequential()
for filters in (32, 64):
    net.add(nn.Conv2D(filters, 3, padding=1, use_bias=False), nn.BatchNorm(),
            nn.Activation("relu"), nn.MaxPool2D(2))
net.add(nn.Dense(128, activation="relu"), nn.Dense(classes))
net.initialize(mx.init.Xavier(), ctx=device)
net(to_batch(held_out[:1])[0])  # from which it learns its shapes
net.hybridize()

# Gradients of all workers are added up and divided by the batch of all, which `step` is told.
schedule = mx.lr_scheduler.CosineScheduler(args.epochs * len(batches(0)), base_lr=args.lr)
trainer = gluon.Trainer(net.collect_params(), "sgd",
                        {"learning_rate": args.lr, "momentum": 0.9, "wd": 1e-4,
                         "lr_scheduler": schedule}, kvstore=store)
cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()


def accuracy() -> float:
    """Of the held-out images, on every worker: one that waits does nothing better."""
    right = 0
    for first in range(0, len(held_out), 256):
        inputs, targets = to_batch(held_out[first:first + 256])
        right += int((net(inputs).argmax(axis=1) == targets).sum().asscalar())
    return right / len(held_out)


for epoch in range(1, args.epochs + 1):
    begun, total = time.time(), 0.0
    for numbers in batches(epoch):
        inputs, targets = to_batch(numbers)
        with autograd.record():
            loss = cross_entropy(net(inputs), targets)
        loss.backward()
        trainer.step(args.batch_size)
        total += loss.mean().asscalar()
    seconds = time.time() - begun
    found = accuracy()
    if store.rank == 0:
        print(f"epoch {epoch}: loss {total / len(batches(epoch)):.4f}, accuracy {found:.4f}, "
              f"{batches(epoch).size * store.num_workers / seconds:.0f} images/s", flush=True)

if store.rank == 0:
    net.save_parameters(args.save)
    print(f"final accuracy {found:.4f}; the parameters are in {args.save}")
