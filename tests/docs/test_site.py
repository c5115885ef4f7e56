"""The site is built, and tools/check_site.py notices what it would load from the network."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.processes import LIMIT, run_python

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


@pytest.mark.all_only  # for which make installs MkDocs
def test_the_site_is_built_without_a_warning_and_shows_without_a_network(tmp_path: Path) -> None:
    build = ["-m", "mkdocs", "build", "--strict", "-q", "-d", tmp_path / "site"]
    assert run_python(*build, directory=ROOT, seconds=5 * LIMIT).stdout == ""
    assert run_python(CHECK, tmp_path / "site").stderr == ""
