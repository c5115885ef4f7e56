"""Parallel text: reading it, words and vocabularies, and batches of sentences of like length.

A sentence is cut into words, single digits and single other characters; what follows a space
begins with "▁", so that joining them gives the sentence again. A vocabulary holds the most frequent
of these and every character seen, and spells what else it meets. Numbers, and names that are rare,
are thereby sentences of small parts, which a network can learn to copy or to change.
"""
from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

Pair = Tuple[str, str]
Encoded = Sequence[Tuple[List[int], List[int]]]  # each pair's words, as numbers

PADDING, BEGIN, END, UNKNOWN = range(4)
SPECIAL = ("<padding>", "<begin>", "<end>", "<unknown>")
SPACE = "▁"
_PIECES = re.compile(r"\s?(?:[^\W\d_]+|\S)")


def read_sentences(path: str, may_be_empty: bool = False) -> list[str]:
    """The lines of a file, without spaces around them.

    Raises
    ------
    ValueError
        A line is empty, unless it may be, or not UTF-8; it is named as FILE:LINE.
    OSError
        The file cannot be read.
    """
    sentences = []
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), 1):
        try:
            sentences.append(line.decode("utf-8").strip())
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}:{number}: not UTF-8: byte {line[error.start]:#04x} at place "
                f"{error.start + 1} of the line"
            ) from None
    if not sentences[-1]:  # what follows the last line's end
        sentences.pop()
    for number, sentence in enumerate(sentences, 1):
        if not sentence and not may_be_empty:
            raise ValueError(f"{path}:{number}: the line is empty; each must hold one sentence")
    return sentences


def read_pairs(source: str, target: str, may_be_empty: bool = False) -> list[Pair]:
    """The sentences of two files that say the same, line by line. Where a line may be empty, so may
    a side of a pair.

    Raises
    ------
    ValueError
        As `read_sentences`, or the files differ in length, or have no line.
    """
    ours, theirs = (read_sentences(path, may_be_empty) for path in (source, target))
    if len(ours) != len(theirs):
        shorter, longer = sorted(((len(ours), source), (len(theirs), target)))
        raise ValueError(
            f"{longer[1]}:{shorter[0] + 1}: {shorter[1]} has no such line: it has {shorter[0]}, "
            f"the other {longer[0]}"
        )
    if not ours:
        raise ValueError(f"{source}:1: there is no sentence in the file")
    return list(zip(ours, theirs))


def cut(sentence: str) -> list[str]:
    """The words, digits and other characters of a sentence."""
    return [SPACE + piece[1:] if piece[0].isspace() else piece
            for piece in _PIECES.findall(" " + " ".join(sentence.split()))]


def join(pieces: Sequence[str]) -> str:
    """The sentence that pieces give: the reverse of `cut`."""
    return "".join(pieces).replace(SPACE, " ").strip()


class Vocabulary:
    """Words and their numbers.

    Parameters
    ----------
    words
        The special ones first, as `SPECIAL` has them.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def build(cls, sentences: Sequence[str], least: int, most: int) -> Vocabulary:
        """What occurs at least `least` times, the most frequent first, and all characters.

        There are no more than `most` words, unless there are more characters than that.
        """
        counts = Counter(piece for sentence in sentences for piece in cut(sentence))
        characters = sorted({part for piece in counts for part in _spelled(piece)})
        kept = [*SPECIAL, *characters]
        known = set(kept)
        frequent = sorted(counts, key=lambda piece: (-counts[piece], piece))
        kept += [piece for piece in frequent if counts[piece] >= least and piece not in known]
        return cls(kept[: max(most, len(known))])

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, sentence: str) -> list[int]:
        """The numbers of a sentence's words and of the word that ends it."""
        numbers = []
        for piece in cut(sentence):
            if piece in self._numbers:
                numbers.append(self._numbers[piece])
            else:
                numbers += [self._numbers.get(part, UNKNOWN) for part in _spelled(piece)]
        return [*numbers, END]

    def decode(self, numbers: Sequence[int]) -> str:
        """The sentence of some words; special ones are left out, apart from unknown ones."""
        return join([self.words[number] for number in numbers if number >= UNKNOWN])

    def save(self, path: str) -> None:
        Path(path).write_text("".join(f"{word}\n" for word in self.words), encoding="utf-8")

    def check_equals(self, path: str) -> None:
        """Raises ValueError where a saved vocabulary differs, as FILE:LINE."""
        saved = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
        for number, words in enumerate(zip(saved, self.words), 1):
            if words[0] != words[1]:
                raise ValueError(
                    f"{path}:{number}: the vocabulary is another model's: it has {words[0]!r} "
                    f"where the text's has {words[1]!r}"
                )
        if len(saved) != len(self):
            raise ValueError(
                f"{path}:{min(len(saved), len(self)) + 1}: the vocabulary is another model's: it "
                f"has {len(saved)} words, the text's {len(self)}"
            )


def _spelled(piece: str) -> list[str]:
    """A piece's characters, the first of them with the space before it."""
    first = 2 if piece.startswith(SPACE) else 1
    return [piece[:first], *piece[first:]]


class Batch(NamedTuple):
    """Sentences of like length, padded; int32 arrays.

    `source` (sentences, source length), `lengths` (sentences,) of it, `begun` and `ended`
    (sentences, target length): the target words from the one that begins, and to the one that ends.
    """

    source: np.ndarray
    lengths: np.ndarray
    begun: np.ndarray
    ended: np.ndarray


def fitting(pairs: Sequence[Pair], vocabularies: Sequence[Vocabulary], most: int) -> list[Pair]:
    """Those of which neither side is empty, or has more than `most` words as `encode_pairs` counts
    them."""
    return [
        pair for pair in pairs
        if all(side and len(vocabulary.encode(side)) <= most
               for vocabulary, side in zip(vocabularies, pair))
    ]


def encode_pairs(pairs: Sequence[Pair], vocabularies: Sequence[Vocabulary], most: int,
                 places: Sequence[str], first_line: int = 1) -> Encoded:
    """Each pair's numbers.

    Raises
    ------
    ValueError
        A sentence has more than `most` words, counting the one that ends it. It is
        named by its place: `places` are what comes before ":LINE" for source and target,
        `first_line` is the first pair's.
    """
    encoded = []
    for line, pair in enumerate(pairs, first_line):
        numbers = [vocabulary.encode(side) for vocabulary, side in zip(vocabularies, pair)]
        for place, words in zip(places, numbers):
            if len(words) > most:
                raise ValueError(f"{place}:{line}: the sentence has {len(words)} words, more than "
                                 f"the {most} of --max-length")
        encoded.append((numbers[0], numbers[1]))
    return encoded


def to_batch(pairs: Encoded) -> Batch:
    """Some pairs as one batch, padded to the longest."""
    def padded(sentences: Sequence[list[int]]) -> np.ndarray:
        array = np.full((len(sentences), max(map(len, sentences))), PADDING, np.int32)
        for row, sentence in zip(array, sentences):
            row[:len(sentence)] = sentence
        return array

    sources, targets = zip(*pairs)
    return Batch(padded(sources), np.array([len(source) for source in sources], np.int32),
                 padded([[BEGIN, *target[:-1]] for target in targets]), padded(targets))


@dataclass
class Batches:
    """The batches of every worker, by buckets of length.

    Every worker makes the same number of steps, in each of which all take sentences of the same
    bucket, so that none waits long for another, whatever the lengths. A global batch is the same
    for any number of workers. What does not fill one joins the next longer bucket; the last one of
    all is filled up with sentences of that bucket that were there before.

    Parameters
    ----------
    pairs
        What `encode_pairs` gives.
    width
        Of a bucket, in words: it holds the pairs whose longer side has up to `width` words
        more than those of the bucket before.
    batch_size
        Sentences over all workers.
    seed
        Of the order.
    """

    pairs: Encoded
    width: int
    batch_size: int
    seed: int

    @property
    def steps(self) -> int:
        """Steps an epoch takes."""
        return -(-len(self.pairs) // self.batch_size)

    def order(self, epoch: int) -> list[np.ndarray]:
        """The indices of each global batch of an epoch."""
        random = np.random.RandomState([self.seed, epoch])
        buckets = np.array([(max(map(len, pair)) - 1) // self.width for pair in self.pairs])
        batches: list[np.ndarray] = []
        rest = bucket = np.array([], int)
        for number in np.unique(buckets):
            bucket = np.concatenate([rest, random.permutation(np.flatnonzero(buckets == number))])
            whole = len(bucket) // self.batch_size * self.batch_size
            batches += list(bucket[:whole].reshape(-1, self.batch_size))
            rest = bucket[whole:]
        if len(rest):
            batches.append(np.resize(np.concatenate([rest, bucket]), self.batch_size))
        return [batches[i] for i in random.permutation(len(batches))]

    def of_worker(self, epoch: int, rank: int, num_workers: int) -> Iterator[Batch]:
        """A worker's share: every `num_workers`-th sentence of each global batch."""
        for batch in self.order(epoch):
            yield to_batch([self.pairs[i] for i in batch[rank::num_workers]])
