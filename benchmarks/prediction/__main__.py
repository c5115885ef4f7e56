"""python -m benchmarks.prediction: predicts what was measured, and writes docs/prediction.md."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import List

from kvstore_ext import _core
from kvstore_ext.predict.measuring import measure
from kvstore_ext.predict.speeds import Speeds

from benchmarks.prediction import arms, document, settings
from benchmarks.prediction.document import Compared

_ROOT = Path(__file__).parents[2]
_PROSE = Path(__file__).parent / "misses.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction")
    parser.add_argument("--results", type=Path, default=_ROOT / "docs" / "figures",
                        help="a directory of .jsonl files; default: docs/figures")
    parser.add_argument("--output", type=Path, default=_ROOT / "docs" / "prediction.md")
    parser.add_argument("--speeds", type=Path,
                        help="of kvstore-ext predict --save-speeds; default: measured here")
    arguments = parser.parse_args()
    speeds = Speeds.load(arguments.speeds) if arguments.speeds else measure(_core)
    found: List[Compared] = []
    left_out = set()
    for measured in settings.measured(arguments.results):
        if not arms.is_known(measured.setting.arm):
            left_out.add(measured.setting.arm)
            continue
        found.append(Compared(measured, arms.seconds(measured.setting, speeds)))
        print(f"{document.name_of(measured)}: {100 * found[-1].difference:+.1f} %", flush=True)
    if not found:
        sys.exit(f"error: {arguments.results} has no results of the replay")
    text = document.document(found, sorted(left_out), _PROSE.read_text())
    arguments.output.write_text(text)
    print(document.summary([each for each in found if each.counts]))


if __name__ == "__main__":
    main()
