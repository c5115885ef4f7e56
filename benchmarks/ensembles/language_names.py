"""Which language is a name in? Names of territories, languages, scripts and currencies in the CLDR.

The CLDR is the Unicode Consortium's data on languages, which Babel carries. Languages write with
Latin letters and many are close relatives, so that a short name often fits several: a network errs
on a large part of what it has not seen, as with CIFAR-100. Names that two of the languages share
are left out.
"""
from __future__ import annotations

import functools
import zlib
from typing import Dict, List, Sequence, Tuple

import numpy as np
from ensembles.parts import Parts
from extra import packages

LANGUAGES = (
    "af", "ca", "cs", "da", "de", "es", "et", "fi", "fr", "gl", "hr", "it", "nb", "nl", "pt", "sk",
    "sl", "sv",
)
TABLES = ("territories", "languages", "scripts", "currencies")
FEATURES = 256
TRAIN, VALIDATION, TEST = 3000, 2000, 3000  # examples
_SHARES = (0.5, 0.2, 0.3)  # of what is named


def language_names(seed: int, languages: Sequence[str] = LANGUAGES) -> Parts:
    """A split that follows from the seed; inputs are of shape (n, FEATURES).

    What is named (a territory, say) is in one part with all its names: nothing in a test is a
    translation of what has been trained on.
    """
    things, inputs, labels = _examples(tuple(languages))
    random = np.random.RandomState(seed)
    order = random.permutation(things.max() + 1)
    ends = (np.cumsum((0, *_SHARES)) * len(order)).round().astype(int)
    chosen = []
    for begin, end, size in zip(ends, ends[1:], (TRAIN, VALIDATION, TEST)):
        found = np.flatnonzero(np.isin(things, order[begin:end]))
        chosen.append(random.permutation(found)[:size])
    return Parts(*((inputs[rows], labels[rows]) for rows in chosen)).centred()


@functools.lru_cache(maxsize=1)
def _examples(languages: Tuple[str, ...]) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each name: the number of what it names, its features, the number of its language."""
    with packages():
        from babel import Locale
    found: Dict[str, List[Tuple[str, int]]] = {}
    for label, language in enumerate(languages):
        locale = Locale.parse(language)
        for table in TABLES:
            for code, name in getattr(locale, table).items():
                found.setdefault(name.lower(), []).append((f"{table} {code}", label))
    alone = sorted(
        (name, min(said)) for name, said in found.items() if len({label for _, label in said}) == 1
    )
    numbers = {thing: i for i, thing in enumerate(sorted({thing for _, (thing, _) in alone}))}
    return (
        np.array([numbers[thing] for _, (thing, _) in alone]),
        np.stack([_features(name) for name, _ in alone]),
        np.array([label for _, (_, label) in alone]),
    )


def _features(name: str) -> np.ndarray:
    """Counts of the one, two and three letters that follow each other, in FEATURES places that a
    checksum chooses, as a vector of a length that makes one feature about 1."""
    text = f" {name} "
    places = [
        zlib.crc32(text[begin : begin + size].encode()) % FEATURES
        for size in (1, 2, 3) for begin in range(len(text) - size + 1)
    ]
    counts = np.bincount(places, minlength=FEATURES).astype(np.float32)
    return np.asarray(counts * (FEATURES**0.5 / 2 / np.sqrt(np.square(counts).sum())), np.float32)
