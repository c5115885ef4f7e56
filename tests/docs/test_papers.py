"""papers.md has every numbered thing of the papers, and every file that names one of them."""
from __future__ import annotations

import json
import re
from typing import Iterator

import pytest

from .documents import ROOT

PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")

# How many of each the papers have.
COUNTS = {
    "P3": {"figure": 12},
    "TernGrad": {"equation": 30, "algorithm": 1, "figure": 5, "table": 3},
    "Slim-DP": {"equation": 1, "algorithm": 1, "figure": 4, "table": 2},
    "EC-DNN": {"equation": 11, "algorithm": 2, "figure": 6, "table": 3},
}


def section(paper: str) -> str:
    found = re.search(rf"^## {paper}$(.*?)(?=^## |\Z)", PAPERS, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def numbers(kind: str, text: str) -> Iterator[int]:
    """Those of `equations 1 and 3` and `figures 7 to 9` in the first column of the table."""
    first = "\n".join(row.split("|")[1] for row in text.splitlines() if row.startswith("|"))
    for found in re.findall(rf"{kind}s? (\d+[^;:a-zA-Z]*(?:(?:to|and) \d+[^;:a-zA-Z]*)*)", first):
        text = re.sub(r"\([a-z]\)", "", found)
        for begin, end in re.findall(r"(\d+)(?: to (\d+))?", text):
            yield from range(int(begin), int(end or begin) + 1)


@pytest.mark.parametrize("paper", COUNTS)
def test_nothing_numbered_is_left_out(paper: str) -> None:
    for kind, count in COUNTS[paper].items():
        missing = set(range(1, count + 1)) - set(numbers(kind, section(paper)))
        assert missing == set(), kind


def test_recipes_that_are_named_are_there() -> None:
    recipes = {path.stem for path in (ROOT / "examples" / "recipes").glob("*.json")}
    named = set(re.findall(r"`((?:p3|terngrad|slim|ec-dnn)-(?:figure|table)-[\w-]+)`", PAPERS))
    assert named
    assert named == recipes
    for recipe in recipes:
        text = (ROOT / "examples" / "recipes" / f"{recipe}.json").read_text(encoding="utf-8")
        assert json.loads(text)["stands_for"].split(",")[0] in COUNTS
