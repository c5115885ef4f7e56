"""Train Sockeye's translation model with Gluon, in one process or over a cluster.

Over two workers and two servers on this machine, on English and German phrases that Babel's CLDR
data give, which need no download:

    python tools/launch.py -n 2 -s 2 python examples/train_sockeye.py --kv-store p3

On any parallel text, two files with a sentence a line: --source train.en --target train.de.

--batch-size counts the sentences of one step over all workers and all their devices, so that the
same flags mean the same training on one worker as on ten, dropout apart.
"""
from __future__ import annotations

import argparse
import copy
import json
import math
import os
import sys

import checkpoints
import recipe
import script

parser = argparse.ArgumentParser(description="Train Sockeye's translation model with Gluon.")
parser.add_argument("--source", help="text to train on, a sentence a line (default: CLDR phrases)")
parser.add_argument("--target", help="its translation, line by line")
parser.add_argument("--held-out-source", help="text to validate on (default: 5 %% of --source)")
parser.add_argument("--held-out-target")
parser.add_argument("--languages", default="en,de", metavar="FROM,TO",
                    help="of the CLDR phrases: any two locales that Babel knows")
parser.add_argument("--text-scale", type=float, default=1.0, help="multiplies the CLDR phrases")
parser.add_argument("--max-length", type=script.positive, default=100,
                    help="most words of a sentence")
parser.add_argument("--drop-unfit", action="store_true",
                    help="leave out pairs of which a side is empty or longer than that, and say "
                    "how many; otherwise the first one is an error")
parser.add_argument("--min-count", type=script.positive, default=3, help="rarer words are spelled")
parser.add_argument("--max-words", type=script.positive, default=50_000,
                    help="size of a vocabulary")
parser.add_argument("--bucket-width", type=script.positive, default=10, help="in words")
parser.add_argument("--model", default="small", help="a configuration of gluon_models.sockeye")
parser.add_argument("--model-options", type=json.loads, default={}, metavar="JSON",
                    help="""fields of it to change, e.g. '{"attention": "dot"}'""")
parser.add_argument("--sparse-embedding", action="store_true",
                    help="row-sparse gradients for the embeddings")
script.add_store_flags(parser)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--patience", type=int, default=4,
                    help="epochs without a better held-out perplexity before training stops")
parser.add_argument("--batch-size", type=script.positive, default=64,
                    help="sentences in a step, over all workers and devices")
parser.add_argument("--optimizer", default="adam", help="any MXNet optimizer")
parser.add_argument("--lr", type=float, default=0.005, help="learning rate after the warm-up")
parser.add_argument("--wd", type=float, default=0.0, help="weight decay")
parser.add_argument("--clip-gradient", type=float, default=1.0,
                    help="gradients of a sentence are cut to this size, number by number")
script.add_schedule_flags(parser, default="cosine")
parser.add_argument("--beam", type=int, default=5)
parser.add_argument("--length-alpha", type=float, default=1.0)
parser.add_argument("--length-beta", type=float, default=0.0)
parser.add_argument("--bleu-sentences", type=script.positive, default=100,
                    help="held-out sentences translated after each epoch; in the end it is all")
parser.add_argument("--examples", type=int, default=3, help="translations shown after each epoch")
parser.add_argument("--seed", type=int, default=0)
script.add_checkpoint_flags(parser)
script.add_snapshot_flags(parser)
parser.add_argument("--save", metavar="FILE",
                    help="write the parameters in the end; {rank} in it becomes the worker's")
script.add_progress_flags(parser)
args = recipe.parse_arguments(parser)

script.import_mxnet(args.kv_store)
with script.packages():
    import mxnet as mx
    import sacrebleu
    import translation
    from gluon_models.sockeye import Sockeye, configuration
    from kept_values import KeptValues
    from mxnet import autograd, gluon
    from parallel_text import Batches, Vocabulary, encode_pairs, fitting
    from progress import CompressionReport, Progress, percent, print_line
    from waiting import Watch

devices = script.find_devices(args.devices)
saved = checkpoints.Checkpoints(args.checkpoint_dir, args.resume, bool(args.snapshot))
try:
    training, held_out, places, first_line = translation.load_text(args)
    both = [[pair[side] for pair in training] for side in (0, 1)]
    options = dict(args.model_options)
    if args.sparse_embedding:
        options["sparse_embedding"] = True
    try:
        shape = configuration(args.model, **options)
    except ValueError as error:
        raise ValueError(f"--model {args.model}, --model-options {options}: {error}") from None
    texts = [both[0] + both[1]] * 2 if shape.tying == "all" else both
    vocabularies = [Vocabulary.build(text, args.min_count, args.max_words) for text in texts]
    if args.resume:
        for vocabulary, name in zip(vocabularies, translation.VOCABULARIES):
            vocabulary.check_equals(os.path.join(saved.found[-1], name))
    pairs = len(training) + len(held_out)
    if args.drop_unfit:
        training, held_out = (fitting(part, vocabularies, args.max_length)
                              for part in (training, held_out))
        if not training or not held_out:
            raise ValueError(f"--drop-unfit leaves {len(training)} pairs to train on and "
                             f"{len(held_out)} held out")
    encoded = encode_pairs(training, vocabularies, args.max_length, places[:2])
    held_out_encoded = encode_pairs(held_out, vocabularies, args.max_length, places[2:],
                                    first_line)
    net = Sockeye(len(vocabularies[0]), len(vocabularies[1]), shape)
    search = translation.Translator(net, vocabularies, args, devices[0])
except (OSError, ValueError) as error:
    sys.exit(str(error))

kv = mx.kv.create(args.kv_store)
if args.save:
    try:
        script.file_to_write(args.save.format(rank=kv.rank))
    except argparse.ArgumentTypeError as error:
        parser.error(f"argument --save: {error}")
recipe.check_workers(args.workers, kv.num_workers)
if kv.type.endswith("slim_dp"):
    sys.exit("--kv-store slim_dp: its workers have models of their own, and this script stops by "
             "the held-out perplexity of one that all share; train_image.py trains with it")
if args.batch_size % (kv.num_workers * len(devices)):
    sys.exit(f"--batch-size {args.batch_size} does not divide by {kv.num_workers} workers with "
             f"{len(devices)} devices each")
batches = Batches(encoded, args.bucket_width, args.batch_size, args.seed)


def log(*words: object) -> None:
    if kv.rank == 0 or args.verbose:
        print_line(*words)


if args.drop_unfit:
    log(f"left out {pairs - len(training) - len(held_out)} of {pairs} pairs: a side is empty, or "
        f"has more than {args.max_length} words")
# Every worker starts from the same parameters.
mx.random.seed(args.seed)
net.initialize(mx.init.Xavier(), ctx=devices)
net.hybridize()
first_epoch, updates = 0, 0
kept = KeptValues(best_epoch=0, best_loss=math.inf, best={})  # the last are parameters
if args.resume:
    about = saved.about_last(vars(args), (
        "model", "model_options", "sparse_embedding", "batch_size", "optimizer", "wd"))
    first_epoch, updates = about["epoch"], about["updates"]
    kept.best_epoch, kept.best_loss = about["best_epoch"], about["best_loss"]
    for epoch in filter(None, (kept.best_epoch, first_epoch)):  # none may have been the best
        net.load_parameters(os.path.join(saved.path(epoch), "parameters"), ctx=devices)
        if epoch == kept.best_epoch:
            kept.best = translation.copy_parameters(net, devices[0])

schedule = script.make_schedule(args, batches.steps)
# A step's gradients are sums over words, rescaled to one sentence; each worker's or their sum is
# cut, wherever the optimizer runs.
trainer = gluon.Trainer(
    net.collect_params(), args.optimizer,
    {"learning_rate": args.lr, "lr_scheduler": copy.copy(schedule), "wd": args.wd,
     "begin_num_update": updates, "clip_gradient": args.clip_gradient},
    kvstore=kv, compression_params=args.compression,
    update_on_kvstore=args.update_on_kvstore and args.update_on_kvstore == "true")
compression = CompressionReport(kv)
watch = Watch(trainer, kv.num_workers)
if args.resume:
    saved.resume(trainer, about, kv.rank, args.batch_size, schedule, log)
done = 0  # steps of the first epoch that an interrupted run has made
if args.snapshot:
    updates = script.restore(kv, args, log, kept)
    first_epoch, done = script.place(updates, batches.steps)
if not args.resume and not updates:
    saved.begin_anew(args.snapshot, kv.rank, log)


def save_checkpoint(epoch: int) -> None:
    def fill(folder: str) -> str:
        net.save_parameters(os.path.join(folder, "parameters"))
        for vocabulary, name in zip(vocabularies, translation.VOCABULARIES):
            vocabulary.save(os.path.join(folder, name))
        return checkpoints.save_states(trainer, folder)

    about = {"updates": updates, "best_epoch": kept.best_epoch, "best_loss": kept.best_loss,
             "flags": vars(args)}
    not_saved = saved.write(epoch, about, fill, kv.barrier if compression.active else lambda: None)
    if not_saved and epoch == first_epoch + 1:
        log(f"checkpoints are without the optimizer's state: {not_saved}")


def rank_0s(number: float, epoch: int) -> float:
    """Rank 0's number, on every worker: they must not disagree on when to stop."""
    found = mx.nd.array([number])
    if hasattr(kv, "broadcast_from"):
        kv.broadcast_from(0, "held-out loss", found)
    else:  # MXNet's own stores give a key's first value to all
        kv.broadcast(1_000_000 + epoch, found, out=found)
    return float(found.asscalar())


def bleu(translations: list[str]) -> float:
    references = [pair[1] for pair in held_out[:len(translations)]]
    return sacrebleu.corpus_bleu(translations, [references]).score


log(f"{args.model} on {len(training)} sentences, vocabularies of {len(vocabularies[0])} and "
    f"{len(vocabularies[1])} words: {kv.num_workers} workers, store {kv.type}, "
    f"{len(devices)} x {devices[0].device_type} each, {args.batch_size} sentences a step")
progress = Progress(args, shown=kv.rank == 0 or args.verbose, steps=batches.steps,
                    epochs=range(first_epoch + 1, args.epochs + 1), samples=args.batch_size,
                    store=kv, waiting_share=watch.share)
log("epoch  learning rate  training perplexity  held-out perplexity   BLEU  samples/s  waiting")
for epoch in range(first_epoch + 1, args.epochs + 1):
    if epoch - 1 - kept.best_epoch >= args.patience:
        log(f"no better held-out perplexity in {args.patience} epochs")
        break
    if not done:
        mx.random.seed(args.seed + epoch * kv.num_workers + kv.rank)  # dropout differs by worker
    progress.begin_epoch(epoch, done)
    watch.begin()
    total, words = 0.0, 0
    pending: list = []
    for step, batch in enumerate(batches.of_worker(epoch, kv.rank, kv.num_workers), 1):
        if step <= done:
            continue
        with watch.forward(), autograd.record():
            losses = [translation.loss(net, part)
                      for part in translation.split(batch, devices)]
        with watch.backward():
            autograd.backward(losses)
        with watch.update():
            trainer.step(args.batch_size)
        # Wait for the step before, not for this one, which goes on beside the next.
        total += sum(loss.sum().asscalar() for loss in pending)
        progress.step(total / words if words else None)
        words += translation.count_words(batch)
        pending = losses
        updates += 1
        if args.snapshot:
            kv.snapshot(args.snapshot, args.snapshot_every)
    done = 0
    total += sum(loss.sum().asscalar() for loss in pending)
    mx.nd.waitall()
    progress.end_epoch()
    training_loss = total / words if words else math.nan
    held_out_loss = rank_0s(translation.mean_loss(net, held_out_encoded, devices[0]), epoch)
    if held_out_loss < kept.best_loss:
        kept.best_epoch, kept.best_loss = epoch, held_out_loss
        kept.best = translation.copy_parameters(net, devices[0])
    if kv.rank == 0:
        translations = search.translate(held_out_encoded[:args.bleu_sentences])
        score = bleu(translations)
        progress.write({"loss/training": training_loss, "loss/held_out": held_out_loss,
                        "accuracy/bleu": score})
        log(f"{epoch:5d}  {schedule(updates):13.5f}  {math.exp(min(training_loss, 50)):19.3f}  "
            f"{math.exp(min(held_out_loss, 50)):19.3f}  {score:5.1f}  "
            f"{progress.samples_per_second:9.0f}  {percent(watch.share()):>7}")
        for pair, found in list(zip(held_out, translations))[:args.examples]:
            log(f"       {pair[0]}  ->  {found}" + ("" if found == pair[1] else f"  ({pair[1]})"))
        if args.checkpoint_dir:
            save_checkpoint(epoch)
    if compression.active:
        log(f"       {compression.text()}")
        saved.write_own(epoch, trainer, kv.rank, kv.barrier)
progress.end()
if kept.best_epoch:
    translation.set_parameters(net, kept.best)
if args.save:
    net.save_parameters(args.save.format(rank=kv.rank))
if kv.rank == 0:
    translations = search.translate(held_out_encoded)
    log(f"best epoch {kept.best_epoch}, "
        f"held-out perplexity {math.exp(min(kept.best_loss, 50)):.3f}")
    log(f"held-out BLEU {bleu(translations):.2f}, of copying the source "
        f"{bleu([pair[0] for pair in held_out]):.2f}")
