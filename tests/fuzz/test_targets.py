"""What others send, with something changed: whoever reads it raises his own error, and no other."""
from __future__ import annotations

import pytest

from .__main__ import seeds_of
from .mutations import Mutations
from .targets import TARGETS

_RUNS = 300


@pytest.mark.parametrize("name", TARGETS)
def test_it_is_refused_in_words(name: str) -> None:
    seeds = seeds_of(name)
    mutations = Mutations(seeds, seed=0)
    for data in [*seeds, *(mutations.next() for _ in range(_RUNS))]:
        TARGETS[name](data)
