"""A real browser shows the page, without a network, on a phone, in the dark, and in print."""
from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Dict

import pytest
from kvstore_ext.report.analysis import analyse
from kvstore_ext.report.page import page

from tests.report import jobs
from tests.support.system_packages import need

# Told by a script that is added for that: the page has none.
PROBE = """<script>addEventListener('load', () => {
  const box = one => { const at = one.getBoundingClientRect(); return [at.width, at.height] }
  const far = [...document.querySelectorAll('body *')].filter(one =>
    !one.closest('.table, svg') && one.getBoundingClientRect().right > innerWidth + 1)
  document.title = JSON.stringify({
    inside: innerWidth, wide: document.documentElement.scrollWidth,
    far: far.map(one => one.outerHTML.slice(0, 80)),
    pictures: [...document.querySelectorAll('figure svg')].map(box),
    drawn: [...document.querySelectorAll('figure path, figure rect')].map(box),
    paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    loaded: performance.getEntriesByType('resource').length,
  })
})</script></body>"""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars"),
)


def browse(page_file: Path, *flags: str) -> str:
    (chromium,) = need("chromium")
    profile = page_file.parent / f"browser-{abs(hash(flags))}"
    command = [chromium, *FLAGS, f"--user-data-dir={profile}", *flags, page_file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def seen(page_file: Path, *flags: str) -> Dict[str, Any]:
    shown = browse(page_file, "--dump-dom", *flags)
    told = re.search("<title>(.*?)</title>", shown)
    assert told is not None
    return json.loads(told[1])


@pytest.mark.all_only
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    text = page(analyse(jobs.UNEVEN.trace()))
    file = tmp_path / "report.html"
    file.write_text(text.replace("</body>", PROBE))

    wide = seen(file, "--window-size=1200,900")
    phone = seen(file, "--window-size=390,800", "--blink-settings=preferredColorScheme=0")
    for shown in (wide, phone):
        assert shown["wide"] <= shown["inside"]
        assert shown["far"] == []
        assert shown["loaded"] == 0
        assert len(shown["drawn"]) >= 15
        assert all(width > 200 and height > 20 for width, height in shown["pictures"])
        assert all(height > 10 for _, height in shown["drawn"])
    assert phone["inside"] <= 500  # no window is narrower
    assert wide["paper"] == "rgb(255, 255, 255)"
    assert phone["paper"] == "rgb(20, 24, 28)"
    assert phone["ink"] == "rgb(228, 232, 236)"

    printed = tmp_path / "report.pdf"
    browse(file, f"--print-to-pdf={printed}", "--no-pdf-header-footer")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 8
