"""Which steps of a job are traced."""
from __future__ import annotations

import re
from typing import NamedTuple, Optional

_FOR_EVER = 1 << 62


class Steps(NamedTuple):
    """From step `first` to before step `last`; the first step of a process is 1.

    A step begins with the first gradient of its round, the first whose number no gradient of this
    process had before. With `first` 0 all is recorded from the beginning.
    """

    first: int = 0
    last: int = _FOR_EVER

    @classmethod
    def parse(cls, text: Optional[str]) -> Steps:
        """From text such as "50:60"; all without one. Raises ValueError for anything else."""
        if not text:
            return cls()
        found = re.fullmatch(r"(\d+):(\d+)", text)
        if found is None or not 1 <= int(found[1]) < int(found[2]):
            raise ValueError(
                f"found '{text}', allowed is FIRST:LAST, such as 50:60 for the steps 50 to 59"
            )
        return cls(int(found[1]), int(found[2]))
