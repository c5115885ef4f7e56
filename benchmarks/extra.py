"""Packages that only the extra `examples` brings."""
from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Iterator


@contextmanager
def packages() -> Iterator[None]:
    """Around imports: ends where a package is not installed, and says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        sys.exit(
            f"error: the package {error.name} is not installed: pip install '.[examples]' brings it"
        )
