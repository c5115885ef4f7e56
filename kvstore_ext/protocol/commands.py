"""What workers command all servers to do, on the channel of MXNet's own store.

Only commands with head 0 reach a server's Python. There a stock server expects a pickled optimizer,
and complains of our words in its log.
"""
from __future__ import annotations

from typing import Callable, Dict

HEAD = 0

GREET = "greet"  # then the worker's rank, its host, the name of its job
SET_OPTIMIZER = "optimizer"  # then the store's number, its keys, the optimizer
SPARSE_SETTINGS = "settings"  # then a sparse key's number, and the settings

_BEGIN = "kvstore_ext "

# What is said to who wants MXNet's own store, at workers and at servers.
STOCK_SERVERS = (
    "MXNet's store has servers of its own: --server-command \"python -c 'import mxnet'\""
)


def command(word: str, *arguments: object) -> str:
    """A command as it travels; only the last argument may have spaces."""
    return " ".join([_BEGIN + word, *map(str, arguments)])


class Commands:
    """Who executes which command."""

    def __init__(self) -> None:
        self._executors: Dict[str, Callable[[str], None]] = {}  # all before the first command

    def register(self, word: str, execute: Callable[[str], None]) -> None:
        """Has execute(arguments) called for commands that begin with this word."""
        self._executors[word] = execute

    def execute(self, text: str) -> bool:
        """Executes a command; False for what is none of these."""
        word, _, arguments = text[len(_BEGIN) :].partition(" ")
        if not text.startswith(_BEGIN) or word not in self._executors:
            return False
        self._executors[word](arguments)
        return True
