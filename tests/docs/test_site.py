"""tools/check_site.py, which make docs runs, notices what a site would load from the network."""
from __future__ import annotations

from pathlib import Path

from tests.support.paths import ROOT
from tests.support.processes import run_python

CHECK = ROOT / "tools" / "check_site.py"
INSIDE = '<script src="assets/a.js"></script><a href="https://example.org">away</a>'


def test_links_may_lead_away(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(INSIDE)
    assert run_python(CHECK, tmp_path).stderr == ""


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(f'{INSIDE}<img src="https://example.org/a.png">')
    (tmp_path / "a.css").write_text("@import url('//example.org/b.css'); p {color: red}")
    assert run_python(CHECK, tmp_path, status=1).stderr.splitlines() == [
        f"{tmp_path}/index.html: https://example.org/a.png",
        f"{tmp_path}/a.css: //example.org/b.css",
    ]


def test_a_site_has_to_be_there(tmp_path: Path) -> None:
    assert "no index.html" in run_python(CHECK, tmp_path, status=1).stderr
