"""Has traces know a network once it is compiled (trace/networks.py)."""
from __future__ import annotations

from typing import Any, Callable

from ..trace.networks import networks


def telling_of_compiled(build: Callable[..., Any]) -> Callable[..., Any]:
    """HybridBlock._build_cache, which tells of the block then."""

    def build_cache(block: Any, *arguments: Any) -> Any:
        built = build(block, *arguments)
        networks.compiled(block)
        return built

    return build_cache
