"""The page of make coverage, from what coverage.py and gcovr write."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT


def test_a_row_for_each_directory_and_one_for_all(tmp_path: Path) -> None:
    counts = {"a/b/one.py": (10, 9), "a/b/two.py": (10, 10), "top.py": (5, 0), "a/empty.py": (0, 0)}
    python, core = tmp_path / "python.json", tmp_path / "core.json"
    python.write_text(json.dumps({"files": {
        path: {"summary": {"num_statements": lines, "covered_lines": run}}
        for path, (lines, run) in counts.items()}}))
    core.write_text(json.dumps({"files": [
        {"filename": "csrc/room/one.cc", "line_total": 3, "line_covered": 2}]}))
    command = [sys.executable, str(ROOT / "tools" / "count_lines" / "report.py"), python, core]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line for line in page.splitlines() if line.startswith("|") and "%" in line] == [
        "| `./*.py` | 5 | 5 | 0.0 % |",
        "| `a/b/` | 20 | 1 | 95.0 % |",
        "| all | 25 | 6 | 76.0 % |",
        "| `csrc/room/` | 3 | 1 | 66.7 % |",
        "| all | 3 | 1 | 66.7 % |",
    ]
