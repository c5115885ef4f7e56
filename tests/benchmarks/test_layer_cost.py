"""The document shows what the benchmark of layers says."""
from __future__ import annotations

from benchmarks.layer_cost import told
from tests.support.paths import ROOT


def test_the_document_shows_events_as_the_benchmark_says_them() -> None:
    text = (ROOT / "docs" / "trace.md").read_text()
    # Of both passes: ResNet-50 has half as many layers.
    said = told("hybridized", 349, 13.5e-3, 1.0e-3, 0.288)
    assert "349 events a step" in said
    assert f"\n{said}\n" in text
