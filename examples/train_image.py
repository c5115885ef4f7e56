"""Train an image classifier with Gluon, in one process or over a cluster.

In one process, on scikit-learn's handwritten digits, which need no download:

    python examples/train_image.py --dataset digits --model lenet

Over two workers and two servers on this machine:

    python tools/launch.py -n 2 -s 2 python examples/train_image.py --kv-store p3

--batch-size counts the examples of one step over all workers and all their devices. The same
flags therefore mean the same training on one worker as on ten: the same global batches, the same
learning rate, the same number of steps. (Only batch normalization sees the difference, as each
device normalizes with its own examples.)
"""
from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import sys
import time

parser = argparse.ArgumentParser(description="Train an image classifier with Gluon.")
parser.add_argument("--model", default="lenet", help="a name that gluon_models.get_model knows")
parser.add_argument("--model-options", type=json.loads, default={}, metavar="JSON",
                    help="""of that model, e.g. '{"aux_logits": true}' for googlenet""")
parser.add_argument("--dataset", default="digits", choices=("digits", "mnist", "cifar10",
                                                            "imagenet-rec"))
parser.add_argument("--data-dir", default="data", help="where the data set's files lie")
parser.add_argument("--classes", type=int, default=1000,
                    help="with --benchmark or imagenet-rec; other data sets know theirs")
parser.add_argument("--image-shape", default="3,224,224", metavar="C,H,W",
                    help="with --benchmark or imagenet-rec; other data sets know theirs")
parser.add_argument("--threads", type=int, default=4, help="that decode the images of a .rec")
parser.add_argument("--kv-store", default="device",
                    help="any name mx.kv.create knows: p3, dist_sync, device, local, ...")
parser.add_argument("--update-on-kvstore", choices=("true", "false"),
                    help="whether the store runs the optimizer (default: as MXNet chooses)")
parser.add_argument("--compression", type=json.loads, metavar="JSON",
                    help="""passed to the store, e.g. '{"type": "terngrad", "clip_sigma": 2.5}';
                    each epoch then tells what it did""")
parser.add_argument("--devices", default="cpu",
                    help="of each worker: cpu, cpu:2 (two CPU contexts) or GPU ids such as 0,1")
parser.add_argument("--dtype", default="float32", choices=("float32", "float16"))
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch-size", type=int, default=64,
                    help="examples in a step, over all workers and devices")
parser.add_argument("--optimizer", default="sgd", help="any MXNet optimizer")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate after the warm-up")
parser.add_argument("--momentum", type=float, default=0.9, help="of sgd and nag")
parser.add_argument("--wd", type=float, default=1e-4, help="weight decay")
parser.add_argument("--lr-schedule", default="constant", choices=("constant", "step", "cosine"))
parser.add_argument("--lr-steps", default="30,60,80", metavar="E,E,...",
                    help="with step: the epochs after which the learning rate falls")
parser.add_argument("--lr-factor", type=float, default=0.1, help="with step: to this part of it")
parser.add_argument("--warmup-epochs", type=float, default=0,
                    help="the learning rate first rises linearly from 0 for so long")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--checkpoint-dir", help="write a checkpoint after each epoch")
parser.add_argument("--resume", action="store_true",
                    help="continue from the last checkpoint; every worker must see its folder")
parser.add_argument("--benchmark", type=int, metavar="N",
                    help="time N steps on random images instead of training")
parser.add_argument("--verbose", action="store_true", help="all workers print, not rank 0 alone")
args = parser.parse_args()

# Importing kvstore_ext registers its stores. It comes before mxnet because it sets a variable
# that mxnet reads while it is imported: without it communication and computation hardly overlap.
# From Python 3.12 on mxnet needs it whatever the store: it restores what newer versions removed.
STOCK_STORES = ("local", "device", "nccl", "dist_sync", "dist_device_sync", "dist_async")
if args.kv_store not in STOCK_STORES or sys.version_info >= (3, 12):
    import kvstore_ext  # noqa: F401
import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402

if args.kv_store not in STOCK_STORES + tuple(mx.kvstore.KVStoreBase.kv_registry):
    # mx.kv.create would quietly make a local store of it.
    sys.exit(f"--kv-store {args.kv_store} is unknown; known are {', '.join(STOCK_STORES)} and "
             f"{', '.join(sorted(mx.kvstore.KVStoreBase.kv_registry))}")

import datasets  # noqa: E402
import gluon_models  # noqa: E402

classes, image_shape = args.classes, tuple(int(size) for size in args.image_shape.split(","))
if args.devices.startswith("cpu"):
    devices = [mx.cpu(i) for i in range(int(args.devices.partition(":")[2] or 1))]
else:
    devices = [mx.gpu(int(i)) for i in args.devices.split(",")]
    if max(device.device_id for device in devices) >= mx.context.num_gpus():
        sys.exit(f"--devices {args.devices}: MXNet sees {mx.context.num_gpus()} GPUs here")
if args.dtype == "float16" and args.devices.startswith("cpu"):
    sys.exit("--dtype float16 needs GPUs: MXNet multiplies no float16 matrices on a CPU")

# What can be wrong on one worker alone is looked at before it joins the others.
checkpoints = []
if args.checkpoint_dir:
    os.makedirs(args.checkpoint_dir, exist_ok=True)
    checkpoints = sorted(name for name in os.listdir(args.checkpoint_dir)
                         if name.startswith("epoch-"))
if checkpoints and not args.resume:
    sys.exit(f"{args.checkpoint_dir} holds the checkpoints of an earlier run, the last of them "
             f"{checkpoints[-1]}: give --resume or another --checkpoint-dir")
if args.resume and not checkpoints:
    sys.exit(f"--resume: there is no checkpoint in --checkpoint-dir {args.checkpoint_dir}")
steps_per_epoch = args.benchmark
if not args.benchmark:
    try:
        data = datasets.load(args.dataset, args.data_dir, image_shape, args.classes, args.seed,
                             args.threads)
    except (FileNotFoundError, ValueError) as error:
        sys.exit(str(error))
    classes, image_shape = data.classes, data.image_shape
    steps_per_epoch = data.steps(args.batch_size)

kv = mx.kv.create(args.kv_store)
if args.batch_size % (kv.num_workers * len(devices)):
    sys.exit(f"--batch-size {args.batch_size} does not divide by {kv.num_workers} workers with "
             f"{len(devices)} devices each")


def log(*words: object) -> None:
    if kv.rank == 0 or args.verbose:
        print(*words, flush=True)


def show_progress(epoch: int, step: int, loss: float, rate: float) -> None:
    """A bar on a terminal, else a line now and then."""
    global last_shown
    pause = 0.1 if sys.stdout.isatty() else 10
    if (kv.rank and not args.verbose) or time.time() - last_shown < pause:
        return
    last_shown = time.time()
    state = f"{step}/{steps_per_epoch} steps  loss {loss:.4f}  {rate:.0f} samples/s"
    if sys.stdout.isatty():
        filled = 30 * step // steps_per_epoch
        print(f"\r{epoch:5d} [{'#' * filled}{'.' * (30 - filled)}] {state}\033[K", end="",
              flush=True)
    else:
        print(f"{epoch:5d}  {state}", flush=True)


# Every worker starts from the same parameters.
mx.random.seed(args.seed)
try:
    net = gluon_models.get_model(args.model, classes=classes, **args.model_options)
except (TypeError, ValueError) as error:
    sys.exit(f"--model {args.model}: {error}")
net.cast(args.dtype)
# Shapes come from inference, not from a first forward pass: that may leave weights in MKL-DNN's
# own layout, and the stock dist stores do not wait for such weights to reach the servers.
net.infer_shape(mx.nd.zeros((1, *image_shape), dtype=args.dtype))
net.initialize(mx.init.Xavier(), ctx=devices)
net.hybridize()
first_epoch, updates = 0, 0
if args.resume:
    checkpoint = os.path.join(args.checkpoint_dir, checkpoints[-1])
    with open(os.path.join(checkpoint, "about.json")) as file:
        about = json.load(file)
    for flag in ("model", "dataset", "dtype", "batch_size", "optimizer", "momentum", "wd"):
        if about["flags"][flag] != getattr(args, flag):
            sys.exit(f"--resume: {checkpoint} was written with --{flag.replace('_', '-')} "
                     f"{about['flags'][flag]}, this run has {getattr(args, flag)}")
    net.load_parameters(os.path.join(checkpoint, "parameters"), ctx=devices)
    first_epoch, updates = about["epoch"], about["updates"]

# The schedule counts steps and is part of the optimizer, so it works wherever that runs: on the
# servers it would not hear of a call to trainer.set_learning_rate here.
rising = {"base_lr": args.lr, "warmup_steps": int(args.warmup_epochs * steps_per_epoch)}
if args.lr_schedule == "step":
    falls = [int(epoch) * steps_per_epoch for epoch in args.lr_steps.split(",")]
    schedule = mx.lr_scheduler.MultiFactorScheduler(falls, factor=args.lr_factor, **rising)
elif args.lr_schedule == "cosine":
    schedule = mx.lr_scheduler.CosineScheduler(args.epochs * steps_per_epoch, **rising)
else:
    schedule = mx.lr_scheduler.FactorScheduler(step=sys.maxsize, **rising)
optimizer_params = {"learning_rate": args.lr, "lr_scheduler": copy.copy(schedule), "wd": args.wd,
                    "begin_num_update": updates, "multi_precision": args.dtype == "float16"}
if args.optimizer in ("sgd", "nag"):
    optimizer_params["momentum"] = args.momentum

# The store is passed as an object: given a name, Trainer uses no store where it sees one device.
trainer = gluon.Trainer(
    net.collect_params(), args.optimizer, optimizer_params, kvstore=kv,
    compression_params=args.compression,
    update_on_kvstore=args.update_on_kvstore and args.update_on_kvstore == "true")
cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
# What stores raise that cannot save or load the optimizer's state: stock dist stores assert.
NO_STATES = (AssertionError, NotImplementedError, mx.MXNetError)


def compresses() -> bool:
    """Whether the store has keys that it compresses."""
    return hasattr(kv, "carried") and bool(kv.carried.compressed())


def own_states(epoch: int) -> str:
    """Where a worker but rank 0 keeps what compression carries over, which is each worker's own."""
    return os.path.join(args.checkpoint_dir, f"worker-{kv.rank}-epoch-{epoch:04d}.states")


if args.resume:
    # Loading the state may send the optimizer to the servers, so it must be complete by now.
    trainer.optimizer.rescale_grad = 1 / args.batch_size
    log(f"resumed from {checkpoint} after epoch {first_epoch}")
    try:
        if about["states_not_saved"]:
            raise NotImplementedError(about["states_not_saved"])
        states = os.path.join(checkpoint, "optimizer.states")
        if kv.rank > 0 and os.path.exists(own_states(first_epoch)):
            states = own_states(first_epoch)
        trainer.load_states(states)
        trainer.optimizer.lr_scheduler = copy.copy(schedule)
    except NO_STATES as error:
        log(f"the optimizer's state (such as its momentum) starts afresh: {error}")


def train_step(images: mx.nd.NDArray, labels: mx.nd.NDArray) -> list:
    """One step; returns each device's sum of losses, which may still be being computed."""
    losses = []
    with autograd.record():
        for x, y in zip(gluon.utils.split_and_load(images, devices),
                        gluon.utils.split_and_load(labels, devices)):
            outputs = net(x.astype(args.dtype, copy=False))
            main, *auxiliary = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            loss = cross_entropy(main.astype("float32"), y)
            for head in auxiliary:
                loss = loss + 0.3 * cross_entropy(head.astype("float32"), y)
            losses.append(loss)
    autograd.backward(losses)
    trainer.step(args.batch_size)
    return [loss.sum() for loss in losses]


def validation_accuracy() -> float:
    """Over the whole validation set, on every worker: then none waits long for another."""
    accuracy = mx.metric.Accuracy()
    for images, labels in data.validation(args.batch_size // kv.num_workers):
        some_devices = devices[:len(labels)]
        for x, y in zip(gluon.utils.split_and_load(images, some_devices, even_split=False),
                        gluon.utils.split_and_load(labels, some_devices, even_split=False)):
            outputs = net(x.astype(args.dtype, copy=False))
            main = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
            accuracy.update(y, main.astype("float32"))
    return accuracy.get()[1]


def save_checkpoint(epoch: int) -> None:
    """Write epoch-NNNN under another name and rename it, so that it is there whole or not."""
    partial = os.path.join(args.checkpoint_dir, "partial")
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    net.save_parameters(os.path.join(partial, "parameters"))
    not_saved = ""
    try:
        trainer.save_states(os.path.join(partial, "optimizer.states"))
    except NO_STATES as error:
        not_saved = f"the store {kv.type} keeps it on the servers ({error})"
        if epoch == first_epoch + 1:
            log(f"checkpoints are without the optimizer's state: {not_saved}")
    with open(os.path.join(partial, "about.json"), "w") as file:
        json.dump({"epoch": epoch, "updates": updates, "states_not_saved": not_saved,
                   "flags": vars(args)}, file, indent=1)
    os.rename(partial, os.path.join(args.checkpoint_dir, f"epoch-{epoch:04d}"))


last_stats: dict = {}


def show_compression() -> None:
    """What the store has done since the last call."""
    global last_stats
    stats, before = kv.stats(), last_stats
    last_stats = stats
    megabytes = {way: (sum(stats[way].values()) - sum(before.get(way, {}).values())) / 1e6
                 for way in ("sent", "received")}
    seconds = ", ".join(f"{what} {stats[what] - before.get(what, 0):.2f} s"
                        for what in ("encode", "queue", "wire", "decode"))
    log(f"       sent {megabytes['sent']:.2f} MB, received {megabytes['received']:.2f} MB; "
        f"gradients {stats['ratio']:.1f} times smaller, {stats['zeros']:.0%} zeros; {seconds}")


last_shown = time.time()
log(f"{args.model} on {'random images' if args.benchmark else args.dataset}: "
    f"{kv.num_workers} workers, store {kv.type}, {len(devices)} x {devices[0].device_type} each, "
    f"{args.batch_size} samples a step")
if args.benchmark:
    worker_batch = args.batch_size // kv.num_workers
    images = mx.nd.random.uniform(shape=(worker_batch, *image_shape))
    labels = mx.nd.array([i % classes for i in range(worker_batch)])
    for step in range(args.benchmark + 3):
        if step == 3:  # the first steps choose algorithms and allocate
            mx.nd.waitall()
            started = time.time()
        losses = train_step(images, labels)
        losses[0].wait_to_read()
    mx.nd.waitall()
    rate = args.benchmark * args.batch_size / (time.time() - started)
    log(f"{args.benchmark} steps: {rate:.1f} samples/s")
    sys.exit()

accuracy = validation_accuracy() if first_epoch >= args.epochs else 0.0
log("epoch  learning rate  training loss  validation accuracy  samples/s")
for epoch in range(first_epoch + 1, args.epochs + 1):
    mx.random.seed(args.seed + epoch * kv.num_workers + kv.rank)  # dropout differs by worker
    total, started = 0.0, time.time()
    pending: list = []
    for step, batch in enumerate(data.train(epoch, args.batch_size, kv.rank, kv.num_workers), 1):
        losses = train_step(*(mx.nd.array(part) for part in batch))
        # Wait for the step before, not for this one, which goes on beside the next.
        total += sum(loss.asscalar() for loss in pending)
        pending = losses
        updates += 1
        show_progress(epoch, step, total * kv.num_workers / args.batch_size / max(1, step - 1),
                      step * args.batch_size / (time.time() - started))
    total += sum(loss.asscalar() for loss in pending)
    mx.nd.waitall()
    rate = steps_per_epoch * args.batch_size / (time.time() - started)
    accuracy = validation_accuracy()
    log(("\r\033[K" if sys.stdout.isatty() else "") + f"{epoch:5d}  {schedule(updates):13.5f}  "
        f"{total * kv.num_workers / args.batch_size / steps_per_epoch:13.4f}  "
        f"{accuracy:19.4f}  {rate:9.0f}")
    if compresses():
        show_compression()
    if args.checkpoint_dir and kv.rank > 0 and compresses():
        trainer.save_states(own_states(epoch))
    if args.checkpoint_dir and kv.rank == 0:
        save_checkpoint(epoch)
log(f"final validation accuracy {accuracy:.4f}")
