"""Train LeNet on handwritten digits with the Module API, in one process or over a cluster.

    python examples/train_module.py
    python tools/launch.py -n 2 -s 2 python examples/train_module.py --kv-store p3

Two lines make a Module script use another store: ``import kvstore_ext`` before ``import mxnet``,
and ``kvstore=`` in the call of ``fit``.
"""
from __future__ import annotations

import argparse

import script

parser = argparse.ArgumentParser(description="Train LeNet on digits with the Module API.")
parser.add_argument("--kv-store", default="local")
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--batch-size", type=int, default=32, help="of each worker, as Module has it")
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--seed", type=int, default=0)
script.add_progress_flags(parser)
args = parser.parse_args()

script.import_mxnet(args.kv_store)  # kvstore_ext before mxnet
import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from progress import Progress, print_line  # noqa: E402

with script.packages():
    from sklearn.datasets import load_digits

kv = mx.kv.create(args.kv_store)

# The same order on every worker; the training examples are continued from their start to fill
# whole batches on all workers, so that none makes a step fewer and leaves the others waiting.
images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 1, 8, 8) / 16
order = np.random.RandomState(0).permutation(len(images))
train, validation = order[:1437], order[1437:]
global_batch = args.batch_size * kv.num_workers
train = np.resize(train, -(-len(train) // global_batch) * global_batch)[kv.rank::kv.num_workers]
np.random.seed([args.seed, kv.rank])  # by which NDArrayIter shuffles
train_data = mx.io.NDArrayIter(images[train], labels[train], args.batch_size, shuffle=True)
validation_data = mx.io.NDArrayIter(images[validation], labels[validation], len(validation))

net = mx.sym.Variable("data")
for filters in (32, 64):
    net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters)
    net = mx.sym.Activation(net, act_type="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
net = mx.sym.FullyConnected(mx.sym.flatten(net), num_hidden=128)
net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="relu"), num_hidden=10)
module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=mx.cpu())


shown = kv.rank == 0 or args.verbose
progress = Progress(args, shown=shown, epochs=range(1, args.epochs + 1), store=kv,
                    steps=len(images[train]) // args.batch_size, samples=global_batch)


def after_batch(state: mx.model.BatchEndParam) -> None:
    progress.step(state.eval_metric.get()[1])


def validation_accuracy() -> float:
    with script.global_parameters(kv):
        return module.score(validation_data, "acc")[0][1]


def after_epoch(epoch: int, *_: object) -> None:
    progress.end_epoch()
    accuracy = validation_accuracy()
    progress.write({"accuracy/validation": accuracy})
    if shown:
        print_line(f"epoch {epoch + 1}: validation accuracy {accuracy:.4f}, "
                   f"{progress.samples_per_second:.0f} samples/s")
    progress.begin_epoch(epoch + 2)


mx.random.seed(args.seed)
progress.begin_epoch(1)
module.fit(
    train_data,
    eval_metric="ce",
    num_epoch=args.epochs,
    kvstore=kv,
    initializer=mx.init.Xavier(),
    optimizer="sgd",
    optimizer_params={"learning_rate": args.lr, "momentum": 0.9, "wd": 1e-4},
    batch_end_callback=after_batch,
    epoch_end_callback=after_epoch,
)
progress.end()
accuracy = validation_accuracy()
if shown:
    print_line(f"final validation accuracy {accuracy:.4f}")
