"""What can be trained: its data, made once for all workers, and its score.

Workers of some arms run in an environment that has MXNet and nothing else; so this process reads
data sets for them.
"""
from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np

from benchmarks import datasets
from benchmarks.training import examples  # noqa: F401 - before cldr_text and parallel_text
from benchmarks.training.recipe import Settings

_IMAGES, _RECOGNISED = "benchmarks.training.images:Images", "% of test images recognised"
LANGUAGES = ("en", "de")
TEXT_SCALE = 0.3
LEAST_OFTEN = 3  # a word of a vocabulary; rarer ones are spelled
LONGEST = 10  # words of a sentence, as a network's steps through them are what takes long
TESTED_SENTENCES = 100


@dataclass(frozen=True)
class Task:
    """A data set, a kind of network and a score.

    Parameters
    ----------
    worker : str
        `module:class`, of which a worker makes one.
    examples : callable
        How many there are to train on.
    prepare : callable
        Writes what workers read into a file.
    score : callable
        Of what the workers have found in one test, one result a worker.
    measure : str
        What the score is.
    """

    worker: str
    examples: Callable[[], int]
    prepare: Callable[[Settings, Path], None]
    score: Callable[[List[Any]], float]
    measure: str


def _digits(count: int, split: Callable[[Settings], int]) -> Task:
    """So many of them to train on; the others test."""
    def prepare(settings: Settings, file: Path) -> None:
        with file.open("wb") as opened:
            np.savez(opened, *datasets.digit_images(split(settings), count))

    return Task(_IMAGES, lambda: count, prepare, _recognised, _RECOGNISED)


def _recognised(found: List[List[int]]) -> float:
    return 100 * sum(right for right, _ in found) / sum(count for _, count in found)


@lru_cache(maxsize=None)
def _text() -> Dict[str, Any]:
    """The same for all seeds."""
    import cldr_text
    from parallel_text import Vocabulary, encode_pairs

    texts = cldr_text.parallel_text(*LANGUAGES, scale=TEXT_SCALE)
    sides = [[pair[side] for pair in texts[0]] for side in (0, 1)]
    vocabularies = [Vocabulary.build(side, LEAST_OFTEN, 50_000) for side in sides]
    training, held_out = (
        [(pair, numbers)
         for pair, numbers in zip(text, encode_pairs(text, vocabularies, sys.maxsize, LANGUAGES))
         if max(map(len, numbers)) <= LONGEST]
        for text in texts
    )
    held_out = held_out[:TESTED_SENTENCES]
    return {
        "training": [numbers for _, numbers in training],
        "held_out": [numbers for _, numbers in held_out],
        "references": [pair[1] for pair, _ in held_out],
        "words": [vocabulary.words for vocabulary in vocabularies],
    }


def _prepare_text(_settings: Settings, file: Path) -> None:
    file.write_text(json.dumps(_text()))


def _bleu(found: List[List[str]]) -> float:
    import sacrebleu

    # Worker r has every N-th sentence from the r-th on.
    workers = len(found)
    count = sum(map(len, found))
    translations = [found[place % workers][place // workers] for place in range(count)]
    return sacrebleu.corpus_bleu(translations, [_text()["references"]]).score


TASKS: Dict[str, Task] = {
    "digits": _digits(1437, lambda _: 0),
    # More to test, and others with every seed: for small differences in the end.
    "half_digits": _digits(896, lambda settings: settings.seed),
    "cifar10": Task(_IMAGES, lambda: 50_000, lambda *_: None, _recognised, _RECOGNISED),
    "translation": Task(
        "benchmarks.training.sentences:Sentences", lambda: len(_text()["training"]),
        _prepare_text, _bleu, "BLEU",
    ),
}
