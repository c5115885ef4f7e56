"""The command kvstore-ext report: a page that says where the time of a job's steps goes."""
from __future__ import annotations

import argparse
from typing import List

from ..trace.command import errors_in_one_line, output_of, parser_of
from ..trace.reading import TraceError, read
from . import words
from .advice import NONE, advise
from .analysis import NoStepError, analyse
from .page import page
from .rules import RULES


def main(arguments: List[str]) -> int:
    """Returns 0; exits with status 1 where there is no trace, or the page cannot be written."""
    found = _parser().parse_args(arguments)
    output = output_of(found)
    with errors_in_one_line("report", TraceError, NoStepError):
        analysis = analyse(read(found.directory), found.bandwidth)
        written = page(analysis)
        with open(output, "w", encoding="utf-8") as file:
            file.write(written)
    waiting = words.per_cent(analysis.share_waiting)
    if not analysis.layers_known:
        waiting = f"{waiting} to {words.per_cent(analysis.share_at_most)}"
    print(f"a step takes {words.seconds(analysis.step)}, {waiting} of it waiting")
    said = [f"{advice.finding} {advice.remedy}" for advice in advise(analysis, RULES)]
    print("\n".join(f"- {line}" for line in said or [NONE]))
    print(f"{output}: open it in a browser")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "report",
        "Write a page that says where the time of a job's steps goes, from its trace.",
        writes="report.html",
    )
    about = "what a host's link can carry each way; default: the most that one was seen to carry"
    parser.add_argument("--bandwidth", type=_gigabits, metavar="GBIT", help=about)
    return parser


def _gigabits(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are Gbit/s, more than 0")
    return value
