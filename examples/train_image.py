"""Train an image classifier with Gluon, in one process or over a cluster.

In one process, on scikit-learn's handwritten digits, which need no download:

    python examples/train_image.py --dataset digits --model lenet

Over two workers and two servers on this machine:

    python tools/launch.py -n 2 -s 2 python examples/train_image.py --kv-store p3

--batch-size counts the examples of one step over all workers and all their devices. The same
flags therefore mean the same training on one worker as on ten: the same global batches, the same
learning rate, the same number of steps. (Each device normalizes with its own examples, and each
worker draws its own crops and dropout; imagenet-rec is shuffled by each worker, in a part of it.)
"""
from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import time

import checkpoints
import recipe
import script

parser = argparse.ArgumentParser(description="Train an image classifier with Gluon.")
parser.add_argument("--model", default="lenet", help="a name that gluon_models.get_model knows")
parser.add_argument("--model-options", type=json.loads, default={}, metavar="JSON",
                    help="""of that model, e.g. '{"aux_logits": true}' for googlenet""")
parser.add_argument("--dataset", default="digits",
                    choices=("digits", "mnist", "cifar10", "cifar10-24", "cifar100",
                             "imagenet-rec"))
parser.add_argument("--data-dir", default="data", help="where the data set's files lie")
parser.add_argument("--classes", type=script.positive, default=1000,
                    help="with --benchmark or imagenet-rec; other data sets know theirs")
parser.add_argument("--image-shape", type=script.numbers(3), default="3,224,224", metavar="C,H,W",
                    help="with --benchmark or imagenet-rec; other data sets know theirs")
parser.add_argument("--augment", default="inception", choices=("inception", "caffe", "none"),
                    help="of imagenet-rec: see image_records.py")
parser.add_argument("--pixel-scale", type=script.above_zero, metavar="N",
                    help="imagenet-rec's pixels are divided by it (default: by their deviation "
                    "with --augment inception, else by 1)")
parser.add_argument("--threads", type=script.positive, default=4,
                    help="that decode the images of a .rec")
script.add_store_flags(parser)
parser.add_argument("--dtype", default="float32", choices=("float32", "float16"))
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch-size", type=script.positive, default=64,
                    help="examples in a step, over all workers and devices")
parser.add_argument("--optimizer", default="sgd", help="any MXNet optimizer")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate after the warm-up")
parser.add_argument("--momentum", type=float, default=0.9, help="of sgd and nag")
parser.add_argument("--wd", type=float, default=1e-4, help="weight decay")
script.add_schedule_flags(parser, default="constant")
parser.add_argument("--ema", type=script.share, metavar="DECAY",
                    help="also evaluates and saves the parameters' exponential moving average, "
                    "such as 0.9999: see moving_average.py")
parser.add_argument("--seed", type=int, default=0)
script.add_checkpoint_flags(parser)
script.add_snapshot_flags(parser)
script.add_progress_flags(parser)
parser.add_argument("--benchmark", type=script.positive, metavar="N",
                    help="time N steps on random images instead of training")
args = recipe.parse_arguments(parser)

script.import_mxnet(args.kv_store)
import datasets  # noqa: E402
import gluon_models  # noqa: E402
import mxnet as mx  # noqa: E402
from moving_average import MovingAverage  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402
from progress import CompressionReport, Progress, percent, print_line  # noqa: E402
from waiting import Watch  # noqa: E402

classes, image_shape = args.classes, args.image_shape
devices = script.find_devices(args.devices)
if args.dtype == "float16" and args.devices.startswith("cpu"):
    sys.exit("--dtype float16 needs GPUs: MXNet multiplies no float16 matrices on a CPU")

saved = checkpoints.Checkpoints(args.checkpoint_dir, args.resume, bool(args.snapshot))
steps_per_epoch = args.benchmark
if not args.benchmark:
    try:
        with script.packages():
            data = datasets.load(args.dataset, args.data_dir, image_shape, args.classes, args.seed,
                                 args.threads, args.augment, args.pixel_scale)
    except (FileNotFoundError, ValueError) as error:
        sys.exit(str(error))
    classes, image_shape = data.classes, data.image_shape
    steps_per_epoch = data.steps(args.batch_size)

kv = mx.kv.create(args.kv_store)
recipe.check_workers(args.workers, kv.num_workers)
if args.batch_size % (kv.num_workers * len(devices)):
    sys.exit(f"--batch-size {args.batch_size} does not divide by {kv.num_workers} workers with "
             f"{len(devices)} devices each")


def log(*words: object) -> None:
    if kv.rank == 0 or args.verbose:
        print_line(*words)


MANY_CLASSES = 100  # from which on the five likeliest are of interest
SCALARS = {"validation accuracy": "accuracy/validation", "top 5": "accuracy/top_5",
           "averaged": "accuracy/averaged", "averaged top 5": "accuracy/averaged_top_5"}

# Slim-DP takes the mean of the workers' updates, the other stores the sum of their gradients.
slim = kv.type == "dist_slim_dp"
gradient_batch = args.batch_size // (kv.num_workers if slim else 1)
if args.ema and slim:
    sys.exit(f"--ema {args.ema} needs workers with the same parameters; with --kv-store "
             f"{args.kv_store} each has its own")

# Every worker starts from the same parameters.
mx.random.seed(args.seed)
try:
    net = gluon_models.get_model(args.model, classes=classes, **args.model_options)
except (TypeError, ValueError) as error:
    sys.exit(f"--model {args.model}: {error}")
if slim and any(parameter.grad_req == "null" for parameter in net.collect_params().values()):
    log("means and variances of batch normalisation are each worker's own with --kv-store "
        f"{args.kv_store}: accuracies and checkpoints have rank 0's (docs/slim-dp.md)")
net.cast(args.dtype)
# Shapes come from inference, not from a first forward pass: that may leave weights in MKL-DNN's
# own layout, and the stock dist stores do not wait for such weights to reach the servers.
net.infer_shape(mx.nd.zeros((1, *image_shape), dtype=args.dtype))
net.initialize(mx.init.Xavier(), ctx=devices)
net.hybridize()
first_epoch, updates = 0, 0
if args.resume:
    checkpoint = saved.found[-1]
    about = saved.about_last(vars(args), (
        "model", "model_options", "dataset", "dtype", "batch_size", "optimizer", "momentum", "wd",
        "ema"))
    first_epoch, updates = about["epoch"], about["updates"]
    if args.ema:
        net.load_parameters(os.path.join(checkpoint, "averaged"), ctx=devices)
average = MovingAverage(net, args.ema, updates) if args.ema else None
if args.resume:
    net.load_parameters(os.path.join(checkpoint, "parameters"), ctx=devices)

schedule = script.make_schedule(args, steps_per_epoch)
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
compression = CompressionReport(kv)
watch = Watch(trainer, kv.num_workers)

if args.resume:
    saved.resume(trainer, about, kv.rank, gradient_batch, schedule, log)
done = 0  # steps of the first epoch that an interrupted run has made
if args.snapshot:
    updates = script.restore(kv, args, log, *([average] if average else []))
    first_epoch, done = script.place(updates, steps_per_epoch)
if not args.resume and not updates:
    saved.begin_anew(args.snapshot, kv.rank, log)


def train_step(images: mx.nd.NDArray, labels: mx.nd.NDArray) -> list:
    """One step; returns each device's sum of losses, which may still be being computed."""
    losses = []
    with watch.forward(), autograd.record():
        for x, y in zip(gluon.utils.split_and_load(images, devices),
                        gluon.utils.split_and_load(labels, devices)):
            outputs = net(x.astype(args.dtype, copy=False))
            main, *auxiliary = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            loss = cross_entropy(main.astype("float32"), y)
            for head in auxiliary:
                loss = loss + 0.3 * cross_entropy(head.astype("float32"), y)
            losses.append(loss)
    with watch.backward():
        autograd.backward(losses)
    with watch.update():
        trainer.step(gradient_batch)
    if average:
        average.update()
    return [loss.sum() for loss in losses]


def accuracies() -> list[float]:
    """The share of the validation set whose class is the likeliest, and with many classes the share
    whose class is among the five likeliest. On every worker: then none waits long for another."""
    metrics = [mx.metric.Accuracy()] + [mx.metric.TopKAccuracy(5)] * (classes >= MANY_CLASSES)
    with script.global_parameters(kv):
        for images, labels in data.validation(args.batch_size // kv.num_workers):
            some_devices = devices[:len(labels)]
            for x, y in zip(gluon.utils.split_and_load(images, some_devices, even_split=False),
                            gluon.utils.split_and_load(labels, some_devices, even_split=False)):
                outputs = net(x.astype(args.dtype, copy=False))
                main = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
                for metric in metrics:
                    metric.update(y, main.astype("float32"))
    return [metric.get()[1] for metric in metrics]


def validate() -> dict[str, float]:
    """By what they are called in the table: accuracies, and those of the averaged parameters."""
    found = dict(zip(("validation accuracy", "top 5"), accuracies()))
    if average:
        with average.in_place():
            found.update(zip(("averaged", "averaged top 5"), accuracies()))
    return found


def save_checkpoint(epoch: int) -> None:
    def fill(folder: str) -> str:
        with script.global_parameters(kv):
            net.save_parameters(os.path.join(folder, "parameters"))
        if average:
            with average.in_place():
                net.save_parameters(os.path.join(folder, "averaged"))
        return checkpoints.save_states(trainer, folder)

    about = {"updates": updates, "flags": vars(args)}
    not_saved = saved.write(epoch, about, fill, kv.barrier if compression.active else lambda: None)
    if not_saved and epoch == first_epoch + 1:
        log(f"checkpoints are without the optimizer's state: {not_saved}")


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
            watch.begin()
            started = time.time()
        losses = train_step(images, labels)
        losses[0].wait_to_read()
    mx.nd.waitall()
    rate = args.benchmark * args.batch_size / (time.time() - started)
    waiting = "" if watch.share() is None else f", {percent(watch.share())} waiting"
    log(f"{args.benchmark} steps: {rate:.1f} samples/s{waiting}")
    sys.exit()

scores = validate() if first_epoch >= args.epochs else {}
progress = Progress(args, shown=kv.rank == 0 or args.verbose, steps=steps_per_epoch,
                    epochs=range(first_epoch + 1, args.epochs + 1), samples=args.batch_size,
                    store=kv, waiting_share=watch.share)
more = [name for name in SCALARS if name != "validation accuracy"
        and (classes >= MANY_CLASSES or "top 5" not in name)
        and (average or "averaged" not in name)]
log("epoch  learning rate  training loss  validation accuracy  samples/s  waiting",
    *(f" {name:>6}" for name in more))
for epoch in range(first_epoch + 1, args.epochs + 1):
    if not done:
        mx.random.seed(args.seed + epoch * kv.num_workers + kv.rank)  # dropout differs by worker
    progress.begin_epoch(epoch, done)
    watch.begin()
    total = 0.0
    pending: list = []
    for step, batch in enumerate(data.train(epoch, args.batch_size, kv.rank, kv.num_workers), 1):
        if step <= done:
            continue
        losses = train_step(*(mx.nd.array(part) for part in batch))
        # Wait for the step before, not for this one, which goes on beside the next.
        total += sum(loss.asscalar() for loss in pending)
        before = step - 1 - done
        progress.step(total * kv.num_workers / args.batch_size / before if pending else None)
        pending = losses
        updates += 1
        if args.snapshot:
            kv.snapshot(args.snapshot, args.snapshot_every)
    total += sum(loss.asscalar() for loss in pending)
    mx.nd.waitall()
    progress.end_epoch()
    made, done = steps_per_epoch - done, 0
    loss = total * kv.num_workers / args.batch_size / made if made else float("nan")
    scores = validate()
    progress.write({"loss/training": loss, **{SCALARS[name]: scores[name] for name in scores}})
    log(f"{epoch:5d}  {schedule(updates):13.5f}  {loss:13.4f}  "
        f"{scores['validation accuracy']:19.4f}  "
        f"{progress.samples_per_second:9.0f}  {percent(watch.share()):>7}",
        *(f" {scores[name]:{max(6, len(name))}.4f}" for name in more))
    if compression.active:
        log(f"       {compression.text()}")
        saved.write_own(epoch, trainer, kv.rank, kv.barrier)
    if args.checkpoint_dir and kv.rank == 0:
        save_checkpoint(epoch)
progress.end()
log(f"final validation accuracy {scores['validation accuracy']:.4f}")
if average:
    log(f"final validation accuracy of the averaged parameters {scores['averaged']:.4f}")
