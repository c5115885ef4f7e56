"""Which of the known names a mistyped one was meant to be."""
from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Mapping, Optional

# How alike two spellings must be, from 0 to 1: 'p4' and 'p3' are by half.
_ALIKE = 0.5


def nearest(written: str, spellings: Mapping[str, str]) -> Optional[str]:
    """The name whose spelling is most like what was written; None where none is like it.

    Parameters
    ----------
    written
        What a user wrote. Capitals and what is no letter or digit are not looked at.
    spellings
        Names by their spellings, of which a name may have several.
    """
    likeness = {
        spelling: SequenceMatcher(None, _bare(written), _bare(spelling)).ratio()
        for spelling in spellings
    }
    best = max(spellings, key=likeness.__getitem__, default=None)
    return spellings[best] if best is not None and likeness[best] >= _ALIKE else None


def did_you_mean(written: str, spellings: Mapping[str, str]) -> str:
    """That question as the end of an error, or nothing where no spelling is like it."""
    found = nearest(written, spellings)
    return "" if found is None else f"; did you mean {found!r}?"


def _bare(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())
