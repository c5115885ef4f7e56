"""The recipes of the examples, and how they are made small."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

from tests.support.paths import EXAMPLES

BATCH = {"imagenet-rec": 2}  # by data set; others 5, of which CIFAR-10's files hold some each


def all_arms() -> Iterator[tuple[str, Path, str | None]]:
    """A name for each arm of each recipe, the recipe, and the arm's name; None without arms."""
    for path in sorted((EXAMPLES / "recipes").glob("*.json")):
        for arm in json.loads(path.read_text()).get("arms", [None]):
            yield f"{path.stem}-{arm}" if arm else path.stem, path, arm


def fields_of(path: Path, arm: str | None) -> dict[str, Any]:
    """What holds for an arm."""
    fields = json.loads(path.read_text())
    return {**fields, **fields.pop("arms", {}).get(arm, {})}


def script_of(fields: dict[str, Any]) -> str:
    """Which of the examples takes them."""
    if "source" in fields:
        return "train_sockeye.py"
    return "train_ec_dnn.py" if "method" in fields else "train_image.py"


def small(fields: dict[str, Any]) -> dict[str, Any]:
    """The same for one worker, an epoch and a small batch; with EC-DNN for rounds of two steps."""
    fields = {name: value for name, value in fields.items() if name not in ("workers", "arms")}
    fields.update(batch_size=BATCH.get(fields.get("dataset", ""), 5), epochs=1)
    if "method" in fields:
        fields.update(tau=2, evaluate_every=1)
    return fields
