"""Beam search: the best target sentences that a `Sockeye` network can be found to give.

The words so far of a sentence are a hypothesis. Of each source sentence the `beam` best ones are
kept, and continued by every word. One that ends has the score of Sockeye's section 3.3 and of Wu et
al. 2016 (https://arxiv.org/abs/1609.08144, equation 14): the logarithm of its probability, divided
by ((beta + words) / (beta + 1)) ** alpha, where the word that ends it counts as one.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

import mxnet as mx
import numpy as np
from gluon_models.sockeye import Sockeye


class Translation(NamedTuple):
    """A sentence: its words, without those that begin and end it, and its normalised score."""

    words: list[int]
    score: float


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over the last axis; same shape, float64."""
    scores = scores.astype(np.float64)
    scores -= scores.max(axis=-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


class BeamSearch:
    """Finds translations with one network, whose parameters may change between calls.

    Parameters
    ----------
    network
        What translates.
    begin
        The word that begins every target sentence.
    end
        The word that ends it.
    beam
        Hypotheses kept of each sentence, at least 1. Each may end at every word, also where another
        word is likelier, so that 1 is greedy search for the best of all ends on its way.
    alpha
        How much longer sentences are made up for; 0 compares plain probabilities.
    beta
        As above.

    Raises
    ------
    ValueError
        `beam` is less than 1, or `alpha` or `beta` is negative.
    """

    def __init__(
        self,
        network: Sockeye,
        begin: int,
        end: int,
        beam: int = 5,
        alpha: float = 1.0,
        beta: float = 0.0,
    ) -> None:
        for name, value, least in (("beam", beam, 1), ("alpha", alpha, 0), ("beta", beta, 0)):
            if value < least:
                raise ValueError(f"{name} is {value!r}; it must be at least {least}")
        self._network = network
        self._begin, self._end = begin, end
        self._beam, self._alpha, self._beta = beam, alpha, beta

    def penalty(self, words: np.ndarray | int) -> np.ndarray | float:
        """What the logarithm of a sentence's probability is divided by."""
        return ((self._beta + words) / (self._beta + 1)) ** self._alpha

    def translate(
        self, source: mx.nd.NDArray, lengths: mx.nd.NDArray, limits: Sequence[int]
    ) -> list[Translation]:
        """The best translation of each sentence.

        Parameters
        ----------
        source
            Words (batch, length), padded with anything.
        lengths
            Of the sentences (batch,), on the same device.
        limits
            The most words of each translation, counting the one that ends it, at least 1.
        """
        searches = [_Sentence(self, limit) for limit in limits]
        network, beam, device = self._network, self._beam, source.context
        # Row i * beam + j of every array belongs to hypothesis j of sentence i.
        *encoded, last = (array.repeat(beam, axis=0) for array in network.encoder(source, lengths))
        state = network.begin(mx.nd, last)
        words = np.full(len(searches) * beam, self._begin)
        while any(search.open for search in searches):
            embedded = network.embedding(mx.nd.array(words, ctx=device))
            state = network.step(embedded, *encoded, *state)
            scores = log_softmax(network.output(state[0]).asnumpy())
            rows = np.arange(len(words))
            for i, search in enumerate(searches):
                block = slice(i * beam, (i + 1) * beam)
                words[block], parents = search.advance(scores[block], self._end)
                rows[block] = i * beam + parents
            state = [array.take(mx.nd.array(rows, ctx=device)) for array in state]
        return [search.best for search in searches]


class _Sentence:
    """The hypotheses for one source sentence."""

    def __init__(self, search: BeamSearch, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"a limit is {limit}; it must be at least 1")
        self._search = search
        self._limit = limit
        # All begin alike, so that only the first may be continued in the first step.
        self._scores = np.full(search._beam, -np.inf)
        self._scores[0] = 0
        self._words: list[list[int]] = [[] for _ in self._scores]
        self._ended: Translation | None = None
        self._steps = 0

    @property
    def open(self) -> bool:
        """Whether a hypothesis can still become the best."""
        if self._steps == self._limit:
            return False
        # More words only lower the logarithm, and the greatest penalty is the limit's.
        promise = self._scores.max() / self._search.penalty(self._limit)
        return self._ended is None or bool(promise > self._ended.score)

    @property
    def best(self) -> Translation:
        assert self._ended is not None  # since the first word: every hypothesis may end
        return self._ended

    def advance(self, scores: np.ndarray, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Continues the hypotheses by one word, given the log probabilities (beam, words).

        Each of them may end; the best of their other continuations are the new ones. Returns the
        last words of those (beam,) and which hypotheses they continue (beam,).
        """
        beam, words = scores.shape
        if not self.open:
            return np.full(beam, end), np.arange(beam)
        self._steps += 1
        totals = self._scores[:, None] + scores
        first = int(totals[:, end].argmax())
        score = float(totals[first, end] / self._search.penalty(self._steps))
        if self._ended is None or score > self._ended.score:
            self._ended = Translation(self._words[first], score)
        totals[:, end] = -np.inf
        # With few words there may be fewer continuations than places: the others stay hopeless.
        best = np.argpartition(-totals, beam - 1, axis=None)[:beam]
        best = best[np.argsort(-totals.ravel()[best], kind="stable")]
        self._scores = totals.ravel()[best]
        parents, nexts = best // words, best % words
        self._words = [[*self._words[parent], int(word)] for parent, word in zip(parents, nexts)]
        return nexts, parents
