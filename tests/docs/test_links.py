"""Links in the documents lead to files that are there, and to headings that they have."""
from __future__ import annotations

from pathlib import Path

import pytest

from .documents import ROOT, anchors, documents, links, undefined_names


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    broken = [link for link in links(document) if not leads_somewhere(document, link)]
    assert broken == []
    assert undefined_names(document) == set()


def leads_somewhere(document: Path, link: str) -> bool:
    """Whether what is linked to is there; other sites are not asked."""
    if link.startswith("https://"):
        return True
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    inside = target == ROOT or ROOT in target.parents
    return inside and target.exists() and (not anchor or anchor in anchors(target))


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 140
