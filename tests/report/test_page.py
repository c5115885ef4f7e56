"""The page: one file that is whole, needs nothing else, and says what was found."""
from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import List, Optional, Tuple

import pytest
from kvstore_ext.report import main as report
from kvstore_ext.report.advice import NONE
from kvstore_ext.report.analysis import analyse
from kvstore_ext.report.page import page
from kvstore_ext.trace.reading import JobTrace

from tests.report import jobs
from tests.report.made_jobs import Key, Made, write
from tests.support.paths import ROOT

EMPTY = ("meta", "wbr")  # elements without an end


class Outline(HTMLParser):
    """Checks that each element ends where it may, and collects what is linked."""

    def __init__(self) -> None:
        super().__init__()
        self.open: List[str] = []
        self.names: List[str] = []
        self.links: List[str] = []
        self.elements: List[str] = []

    def handle_starttag(self, tag: str, attributes: List[Tuple[str, Optional[str]]]) -> None:
        self.elements.append(tag)
        if tag not in EMPTY:
            self.open.append(tag)
        self.names += [value or "" for name, value in attributes if name == "id"]
        self.links += [value or "" for name, value in attributes if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline_of(job: Made, gigabits: Optional[float] = None) -> Tuple[str, Outline]:
    text = page(analyse(job.trace(), gigabits))
    outline = Outline()
    outline.feed(text)
    assert not outline.open
    return text, outline


@pytest.mark.parametrize("name", ["UNEVEN", "COSTLY", "COMPUTE_BOUND"])
def test_a_page_is_whole_and_needs_nothing_else(name: str) -> None:
    text, outline = outline_of(getattr(jobs, name))
    assert "script" not in outline.elements
    assert not re.search(r"https?:|@import|url\(", text)
    assert outline.links
    assert {link[1:] for link in outline.links} <= set(outline.names)
    assert all(link.startswith("#") for link in outline.links)


def test_it_says_what_was_found() -> None:
    text, _ = outline_of(jobs.UNEVEN)
    for said in ("2 workers and 3 servers on one host, steps 3 to 7", "73.2 ms", "dense1",
                 "keys dense2 and dense1 lie there", "server 2 → worker 0"):  # fmt: skip
        assert said in text


def test_many_keys_and_processes_are_folded_and_none_is_left_out() -> None:
    keys = [Key(f"layer{place}", place % 8, 50_000) for place in range(30)]
    text, outline = outline_of(Made(keys, workers=10, servers=8))
    assert "details" in outline.elements
    assert text.count("<b>worker 9</b>") == 2  # its bar, and its link
    assert all(f">layer{place}<" in text for place in range(30))


def test_names_are_text_whatever_they_contain() -> None:
    text, outline = outline_of(Made([Key("<script>alert(1)</script>"), Key("a&b")]))
    assert "script" not in outline.elements
    assert "a&amp;b" in text


def test_hosts_stand_for_their_processes() -> None:
    text, _ = outline_of(replace(jobs.UNEVEN, hosts=["a", "b", "a", "b", "b"]), 10.0)
    assert "on 2 hosts" in text
    assert "10.0 Gbit/s: what you say a link can carry" in text


def test_without_layers_the_page_says_what_is_certain() -> None:
    text, _ = outline_of(replace(jobs.FULL_LINK, layers=False))
    assert "only the wait for the first layer is certain" in text
    assert "at most" in text


def test_without_a_servers_trace_nothing_is_said_of_links() -> None:
    job = jobs.FULL_LINK.trace()
    workers = JobTrace(tuple(job.workers), job.keys)
    text = page(analyse(workers))
    for said in ("What links carry", "has something to", "What it saves is for a link"):
        assert said in page(analyse(job))
        assert said not in text
    assert "What it saves is for a link that carries 2.00 Gbit/s" in page(analyse(workers, 2.0))


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "kvstore_run.py"), "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_writes_the_page_and_tells_the_advice(tmp_path: Path) -> None:
    write(jobs.UNEVEN.trace(), tmp_path)
    done = run(str(tmp_path), "--bandwidth", "4")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("a step takes 73.2 ms, 67 % of it waiting\n- The link into ")
    assert done.stdout.endswith(f"{tmp_path}/report.html: open it in a browser\n")
    assert (tmp_path / "report.html").read_text() == page(analyse(jobs.UNEVEN.trace(), 4.0))


def test_the_command_says_that_no_rule_has_anything_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(jobs.UNEVEN.trace(), tmp_path)
    monkeypatch.setattr(report, "RULES", ())
    assert report.main([str(tmp_path)]) == 0
    assert f"\n- {NONE}\n" in capsys.readouterr().out


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kvstore-ext report: ")
    assert "has no trace" in done.stderr
    done = run(str(tmp_path), "--bandwidth", "fast")
    assert done.returncode == 2
    assert "found 'fast', allowed are Gbit/s, more than 0" in done.stderr
