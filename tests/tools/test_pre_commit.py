"""pre-commit has the Makefile's linters run, all of them and no others."""
from __future__ import annotations

import re

import yaml

from tests.support.paths import ROOT


def test_its_hooks_are_what_make_lint_runs() -> None:
    lints = re.search(r"^LINTS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert lints
    (own,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert own["repo"] == "local"
    entries = [hook["entry"] for hook in own["hooks"]]
    assert sorted(entries) == sorted(f"make {lint}" for lint in lints[1].split())
    for hook in own["hooks"]:
        assert hook["language"] == "system", hook
        # make would take the names of files for targets.
        assert hook["pass_filenames"] is False, hook
