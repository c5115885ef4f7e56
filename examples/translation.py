"""What train_sockeye.py does with text and a network: loading, losses, translations."""
from __future__ import annotations

import argparse
from typing import Any, Sequence

import mxnet as mx
import numpy as np
import script
from gluon_models.beam_search import BeamSearch
from gluon_models.sockeye import Sockeye
from parallel_text import BEGIN, END, Batch, Encoded, Pair, Vocabulary, read_pairs, to_batch

VOCABULARIES = ("vocabulary.source", "vocabulary.target")
GROUP = 32  # sentences that are translated or scored together


def load_text(args: argparse.Namespace) -> tuple[list[Pair], list[Pair], list[str], int]:
    """The pairs to train on, those held out, what the four texts are called in errors, and the line
    on which the held-out ones begin.

    Raises
    ------
    ValueError
        As `read_pairs` and `cldr_text.parallel_text`, or flags do not fit together.
    OSError
        A file cannot be read.
    """
    for names in (("source", "target"), ("held_out_source", "held_out_target")):
        given = [getattr(args, name) is not None for name in names]
        if any(given) != all(given):
            flags = " and ".join("--" + name.replace("_", "-") for name in names)
            raise ValueError(f"{flags} belong together: give both or neither")
    if not args.source:
        if args.held_out_source:
            raise ValueError("--held-out-source needs --source")
        first, comma, second = args.languages.partition(",")
        if not comma:
            raise ValueError(f"--languages {args.languages}: it must be two, such as en,de")
        with script.packages():  # whoever has a text needs no Babel
            import cldr_text

        training, held_out = cldr_text.parallel_text(first, second, scale=args.text_scale)
        places = [f"CLDR phrases of {language}" for language in (first, second)]
        return training, held_out, [*places, *[f"held-out {place}" for place in places]], 1
    training = read_pairs(args.source, args.target, args.drop_unfit)
    if args.held_out_source:
        held_out = read_pairs(args.held_out_source, args.held_out_target, args.drop_unfit)
        return training, held_out, [args.source, args.target, args.held_out_source,
                                    args.held_out_target], 1
    if len(training) < 2:
        raise ValueError(f"{args.source}:1: one sentence is too few to hold any out")
    count = max(1, len(training) // 20)
    places = [args.source, args.target] * 2
    return training[:-count], training[-count:], places, 1 + len(training) - count


def split(batch: Batch, devices: Sequence[Any]) -> list[list[mx.nd.NDArray]]:
    """Each device's part of a batch, as arrays of its own."""
    parts = zip(*(np.split(array, len(devices)) for array in batch))
    return [[mx.nd.array(array, ctx=device) for array in part]
            for part, device in zip(parts, devices)]


def loss(net: Sockeye, part: Sequence[mx.nd.NDArray]) -> mx.nd.NDArray:
    """The negative log likelihood of each target sentence, summed over its words: (sentences,)."""
    source, lengths, begun, ended = part
    likelihoods = mx.nd.log_softmax(net(source, lengths, begun)).pick(ended)
    return -(likelihoods * (ended != 0)).sum(axis=1)


def count_words(batch: Batch) -> int:
    """The target words of a batch, counting those that end sentences."""
    return int((batch.ended != 0).sum())


def mean_loss(net: Sockeye, pairs: Encoded, device: Any) -> float:
    """The negative log likelihood of a target word; its exponential is the perplexity."""
    total, words = 0.0, 0
    for group in _groups(pairs):
        batch = to_batch([pairs[i] for i in group])
        total += float(loss(net, split(batch, [device])[0]).sum().asscalar())
        words += count_words(batch)
    return total / words


def _groups(pairs: Encoded) -> list[np.ndarray]:
    """The indices of pairs, those of like source length together."""
    order = np.argsort([len(source) for source, _ in pairs], kind="stable")
    return [order[i:i + GROUP] for i in range(0, len(order), GROUP)]


class Translator:
    """Translates encoded sentences, by beam search as the flags have it.

    Raises
    ------
    ValueError
        `BeamSearch` admits no such flags.
    """

    def __init__(self, net: Sockeye, vocabularies: Sequence[Vocabulary], args: argparse.Namespace,
                 device: Any) -> None:
        self._search = BeamSearch(net, BEGIN, END, args.beam, args.length_alpha, args.length_beta)
        self._target = vocabularies[1]
        self._most = args.max_length
        self._device = device

    def translate(self, pairs: Encoded) -> list[str]:
        """The translation of each source sentence."""
        found = [""] * len(pairs)
        for group in _groups(pairs):
            source, lengths, *_ = split(to_batch([pairs[i] for i in group]), [self._device])[0]
            limits = [min(self._most, 2 * len(pairs[i][0]) + 10) for i in group]
            for i, best in zip(group, self._search.translate(source, lengths, limits)):
                found[i] = self._target.decode(best.words)
        return found


def copy_parameters(net: Sockeye, device: Any) -> Any:
    """The parameters' values, by name."""
    return {name: parameter.data(device).copy()
            for name, parameter in net.collect_params().items()}


def set_parameters(net: Sockeye, values: Any) -> None:
    """Gives the parameters the values that `copy_parameters` returned."""
    # Parameter.set_data would ask a distributed store to take them, which it cannot.
    for name, parameter in net.collect_params().items():
        for data in parameter.list_data():
            values[name].copyto(data)
