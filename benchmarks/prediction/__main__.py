"""python -m benchmarks.prediction: predicts what was measured, and writes docs/prediction.md."""
from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import List

from kvstore_ext import _core
from kvstore_ext.predict.measuring import measure
from kvstore_ext.predict.speeds import Speeds

from benchmarks.prediction import arms, document, settings
from benchmarks.prediction.compared import Compared

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
    measured = settings.measured(arguments.results)
    known = [each for each in measured if arms.is_known(each.setting.arm)]
    if not known:
        sys.exit(f"error: {arguments.results} has no results of the replay")
    found: List[Compared] = []
    # Not by fork, which MXNet's threads would not outlive.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        predicted = pool.map(arms.seconds, [each.setting for each in known], repeat(speeds))
        for each, seconds in zip(known, predicted):
            found.append(Compared(each, seconds))
            print(f"{each.setting.name}: {100 * found[-1].difference:+.1f} %", flush=True)
    left_out = {each.setting.arm for each in measured} - {each.setting.arm for each in known}
    text = document.document(found, sorted(left_out), _PROSE.read_text())
    arguments.output.write_text(text)
    print(document.summary([each for each in found if each.counts]))


if __name__ == "__main__":
    main()
