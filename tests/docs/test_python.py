"""The Python blocks of the documents run."""
from __future__ import annotations

from pathlib import Path

from tests.support.processes import run_python

from .documents import code, documents


def test_python_blocks_run(tmp_path: Path) -> None:
    pages = [page for page in documents() if any(code(page, "python"))]
    assert len(pages) >= 6
    script = Path(__file__).with_name("run_blocks.py")
    output = run_python(script, *pages, directory=tmp_path, fork=True)
    assert [f"ran {page}" for page in pages] == [
        line for line in output.stdout.splitlines() if line.startswith("ran ")]
