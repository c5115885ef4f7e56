"""What runs below a process, where some of it belongs to others."""

from __future__ import annotations

import builtins
import os
import signal
import subprocess
from typing import Any

import pytest
from kvstore_ext.launcher import process_tree


def test_processes_that_may_not_be_looked_at_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where /proc is mounted with hidepid=1: they are listed, and cannot be read."""

    def refuse(path: Any, *arguments: Any) -> Any:
        if path == "/proc/1/stat":
            raise PermissionError(1, "Operation not permitted", path)
        return real(path, *arguments)

    real = builtins.open
    with subprocess.Popen(["sleep", "60"]) as child:
        monkeypatch.setattr(builtins, "open", refuse)
        found = process_tree.descendants(os.getpid())
        child.kill()
    assert child.pid in found


def test_processes_that_may_not_be_signalled_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(process: int, number: int) -> None:
        if process == 1:
            raise PermissionError(1, "Operation not permitted")
        sent.append((process, number))

    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", refuse)
    process_tree.signal_all([1, 2], signal.SIGTERM)
    assert sent == [(2, signal.SIGTERM)]
