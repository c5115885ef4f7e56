"""Train an image classifier by EC-DNN, or by a method that it is compared with.

Over four workers and two servers on this machine:

    python tools/launch.py -n 4 -s 2 python examples/train_ec_dnn.py --method ec_dnn_s

and alone: python examples/train_ec_dnn.py --method s_dnn

Workers exchange models every --tau steps, and no gradients. --batch-size and --epochs are a
worker's: each trains with so many examples a step, for as many steps as so many passes over an even
share of the examples take, those of compression included.
"""
from __future__ import annotations

import argparse
import json
import math
import sys

import error_curves
import recipe
import script

parser = argparse.ArgumentParser(description="Train an image classifier by EC-DNN.")
parser.add_argument("--method", default="ec_dnn_s",
                    help="s_dnn, ma_dnn, e_dnn, ec_dnn_s, ec_dnn_r or ec_dnn_m")
parser.add_argument("--tau", type=int, default=20, help="local steps between two aggregations")
parser.add_argument("--p", type=float, default=10, help="steps of compression, in per cent")
parser.add_argument("--p-of", choices=("tau", "training"), default="tau",
                    help="what --p is in per cent of; in the paper the whole training")
parser.add_argument("--mu", type=float, default=0.7, help="portion of the examples relabelled")
parser.add_argument("--alpha", type=float, default=0.6, help="weight of diversity, equation 9")
parser.add_argument("--beta", type=float, default=0.4, help="weight of compression, equation 10")
parser.add_argument("--wire", choices=("float16",), help="models travel in half the bytes")
parser.add_argument("--model", default="nin_digits",
                    help="a name that gluon_models.get_model knows")
parser.add_argument("--model-options", type=json.loads, default={}, metavar="JSON",
                    help="""of that model, e.g. '{"dropout": 0.4}' for googlenet_caffe""")
parser.add_argument("--dataset", default="digits",
                    choices=("digits", "mnist", "cifar10", "cifar10-mirrored", "cifar100-mirrored",
                             "imagenet-rec"),
                    help="see local_examples.py; cifar10's images are cropped and flipped once, "
                    "not at every pass")
parser.add_argument("--data-dir", default="data", help="where the data set's files lie")
parser.add_argument("--classes", type=script.positive, default=1000,
                    help="with imagenet-rec; other data sets know theirs")
parser.add_argument("--image-shape", type=script.numbers(3), default="3,224,224", metavar="C,H,W",
                    help="with imagenet-rec; other data sets know theirs")
parser.add_argument("--data", default="partitioned", choices=("partitioned", "shared"),
                    help="each worker has its part of the examples, or all of them")
parser.add_argument("--kv-store", default="p3", help="a store of kvstore_ext")
parser.add_argument("--devices", default="cpu", help="one: own, cpu or a GPU's id")
parser.add_argument("--epochs", type=script.positive, default=20)
parser.add_argument("--batch-size", type=script.positive, default=16,
                    help="examples in a step of a worker")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate after the warm-up")
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--wd", type=float, default=5e-4, help="weight decay")
script.add_schedule_flags(parser, default="polynomial")
parser.add_argument("--seed", type=int, default=0)
script.add_snapshot_flags(parser)
script.add_progress_flags(parser)
parser.add_argument("--evaluate-every", type=script.positive, default=1, metavar="ROUNDS",
                    help="errors are measured and printed in one of so many rounds, and the last")
parser.add_argument("--picture", type=error_curves.picture, metavar="FILE.svg",
                    help="draws the errors over the time of training")
parser.add_argument("--save", type=script.file_to_write, metavar="PREFIX",
                    help="writes PREFIX-local.params and PREFIX-global.params")
args = recipe.parse_arguments(parser)

script.import_mxnet(args.kv_store)
import gluon_models  # noqa: E402
import local_examples  # noqa: E402
import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from kept_values import KeptValues  # noqa: E402
from kvstore_ext import KVStoreError, ec_dnn  # noqa: E402
from progress import Progress, print_line  # noqa: E402

if args.picture:
    with script.packages():
        import matplotlib  # noqa: F401 - what is missing is said before the training

try:
    with script.packages():
        data = local_examples.load(
            args.dataset, args.data_dir, args.seed, args.image_shape, args.classes)
except (FileNotFoundError, ValueError) as error:
    sys.exit(str(error))
devices = script.find_devices(args.devices)
if len(devices) > 1:
    sys.exit(f"--devices {args.devices}: a worker of EC-DNN trains on one")
device, = devices

kv = mx.kv.create(args.kv_store)
recipe.check_workers(args.workers, kv.num_workers)
# Partitions are the same on all workers, which need not be told: the order depends on the seed.
shared = args.data == "shared"
examples = data.part(slice(None) if shared else slice(kv.rank, None, kv.num_workers))


def log(*words: object) -> None:
    if kv.rank == 0 or args.verbose:
        print_line(*words)


def make_network() -> mx.gluon.HybridBlock:
    try:
        return gluon_models.get_model(args.model, classes=data.classes, **args.model_options)
    except (TypeError, ValueError) as error:
        sys.exit(f"--model {args.model}: {error}")


def error_of(network: mx.gluon.HybridBlock) -> float:
    """The share of the test examples that it does not recognise."""
    wrong = [network(images.as_in_context(device)).asnumpy().argmax(axis=1) != labels.asnumpy()
             for images, labels in mx.gluon.data.DataLoader(data.test, 256)]
    return float(np.concatenate(wrong).mean())


def errors(share: float) -> str:
    """As a percentage, with the digits that so many test examples give."""
    return f"{share:.{max(0, math.ceil(math.log10(len(data.test))) - 2)}%}"


mx.random.seed(args.seed * 1000 + kv.rank)  # ensembles need networks that differ
net = make_network()
net.initialize(mx.init.MSRAPrelu("in", 0), ctx=device)
net.hybridize()

share = data.size if shared else data.size // kv.num_workers
steps_per_epoch = max(1, share // args.batch_size)
try:
    method = ec_dnn.Method(
        args.method, tau=args.tau, p=args.p, mu=args.mu, alpha=args.alpha, beta=args.beta,
        training_steps=args.epochs * steps_per_epoch if args.p_of == "training" else None,
        wire=args.wire)
except KVStoreError as error:
    sys.exit(str(error))
length = method.tau + method.compression_steps
asked = args.epochs * steps_per_epoch
rounds = max(1, round(asked / length))
if abs(rounds * length - asked) > 0.02 * asked:
    log(f"{rounds} rounds of {length} mini-batches are {rounds * length}, where {args.epochs} "
        f"epochs have {asked}: --tau, or --epochs, that divides better has both alike")
schedule = script.make_schedule(args, rounds * length / args.epochs)  # it ends with the training
curves: dict[str, list[tuple[float, float]]] = {"local, mean of the workers": [], "global": []}
kept = KeptValues(seconds={}, curves=curves)  # seconds by what took them, evaluation apart
progress = Progress(args, shown=kv.rank == 0 or args.verbose, epochs=range(1, rounds + 1),
                    steps=length, samples=args.batch_size * kv.num_workers, store=kv,
                    waiting_share=lambda: share_of("exchange"))


def share_of(what: str) -> float | None:
    return kept.seconds.get(what, 0.0) / sum(kept.seconds.values()) if kept.seconds else None


try:
    trainer = ec_dnn.Trainer(
        net, examples, "sgd",
        {"learning_rate": args.lr, "momentum": args.momentum, "wd": args.wd,
         "lr_scheduler": schedule},
        method=method, store=kv, batch_size=args.batch_size, evaluation=data.test, seed=args.seed,
        on_step=progress.step)
except KVStoreError as error:
    sys.exit(str(error))
together_is = {"s_dnn": "that network", "ma_dnn": "the average of these networks"}.get(
    args.method, "the ensemble of these networks")
log(f"{args.method}: {args.model} on {args.dataset}, {kv.num_workers} workers, {rounds} rounds of "
    f"{method.tau} local steps and {method.compression_steps} of compression")
log(f"errors: the share of the {len(data.test)} test examples that is not recognised after a "
    f"round's local steps;\n"
    f"local: by a worker's network, mean of the workers; global: by {together_is}")
done = script.restore(kv, args, log, kept) // length if args.snapshot else 0
log("round  steps  seconds  training loss  local error  global error  relabelling  waiting")
progress.begin_epoch(done + 1)
for report in trainer.rounds(rounds - done, args.evaluate_every):
    progress.end_epoch()
    for what, spent in report.seconds.items():
        if what != "evaluate":
            kept.seconds[what] = kept.seconds.get(what, 0.0) + spent
    passed = sum(kept.seconds.values())
    values = {"loss/training": report.training_loss}
    if report.global_error is not None and report.local_errors is not None:
        local_error = float(report.local_errors.mean())
        # Compression comes after the models that were tested.
        tested = passed - report.seconds.get("compress", 0.0)
        for points, found in zip(kept.curves.values(), (local_error, report.global_error)):
            points.append((tested, found))
        values.update({"error/local": local_error, "error/global": report.global_error})
        waiting = report.seconds.get("exchange", 0.0) / report.training_seconds
        steps = report.steps - method.compression_steps
        log(f"{report.round:5d}  {steps:5d}  {tested:7.1f}  {report.training_loss:13.3f}  "
            f"{errors(local_error):>11}  {errors(report.global_error):>12}  "
            f"{report.relabel_share:11.0%}  {waiting:7.0%}")
    progress.write(values)
    if args.snapshot:
        kv.snapshot(args.snapshot, args.snapshot_every)
    progress.begin_epoch(report.round + 1)
progress.end()

local, together = trainer.local_model(make_network), trainer.global_model(make_network)
log(f"relabelling took {share_of('relabel') or 0:.0%} of {sum(kept.seconds.values()):.1f} s of "
    f"training, waiting for other workers' models {share_of('exchange') or 0:.0%}")
log(f"final test error: local {errors(error_of(local))} (of the network with the smallest training "
    f"loss), global {errors(error_of(together))} (of {together_is})")
if kv.rank == 0 and args.save:
    local.save_parameters(f"{args.save}-local.params")
    together.save_parameters(f"{args.save}-global.params")
if kv.rank == 0 and args.picture:
    error_curves.draw(args.picture, f"{args.method} with {kv.num_workers} workers: {args.model} on "
                      f"{args.dataset}", kept.curves)
    log(f"the errors over time are in {args.picture}")
