"""One run of the check, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

PACKAGES = Path(__file__).resolve().parents[2]
ENTRY = PACKAGES / "kvstore_ext" / "check" / "__main__.py"
LIMIT = 300.0  # seconds: the machine may be busy


class Check:
    """What `kvstore_ext --check --json` with these arguments has printed; `status` is its exit's.

    It is started by its path, by `python`, behind the words of `within`.
    """

    def __init__(
        self,
        *arguments: str,
        python: str = sys.executable,
        within: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        command = [*within, python, str(ENTRY), "--json", *arguments]
        ended = run(command, environment)
        self.status = ended.returncode
        self.errors = ended.stderr
        assert ended.stdout, ended.stderr
        self.report: dict[str, Any] = json.loads(ended.stdout)

    def host(self, name: str | None = None) -> dict[str, dict[str, str]]:
        """The findings of one host by their names; of the only one without a name."""
        hosts = self.report["hosts"]
        findings = next(each for each in hosts if name in (None, each["name"]))["findings"]
        return {finding["name"]: finding for finding in findings}

    def links(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The links by origin and target."""
        return {(link["origin"], link["target"]): link for link in self.report["links"]}


def run(
    command: Sequence[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command in the checkout, without what this process or its user has set for MXNet."""
    prefixes = ("KVSTORE_EXT_", "MXNET_", "DMLC_", "PS_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return subprocess.run(
        command,
        cwd=PACKAGES,
        env={**clean, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
