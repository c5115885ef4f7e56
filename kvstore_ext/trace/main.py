"""The command kvstore-ext trace: makes one file of what the processes of a job have recorded."""
from __future__ import annotations

import gzip
from typing import List, TextIO

from .command import errors_in_one_line, output_of, parser_of
from .merging import write_merged
from .reading import JobTrace, TraceError, read


def main(arguments: List[str]) -> int:
    """Returns 0; exits with status 1 where there is no trace, or the file cannot be written."""
    parser = parser_of(
        "trace",
        "Make one file of a job's trace for https://ui.perfetto.dev, chrome://tracing or "
        "https://speedscope.app.",
        writes="trace.json",
        about="one that ends with .gz is compressed",
    )
    found = parser.parse_args(arguments)
    output = output_of(found)
    with errors_in_one_line("trace", TraceError):
        job = read(found.directory)
        with _opened(output) as file:
            count = write_merged(job, file)
    for line in described(job):
        print(line)
    print(f"{output}: {count} events; open it in https://ui.perfetto.dev or chrome://tracing")
    return 0


def described(job: JobTrace) -> List[str]:
    """What there is of each process, a line each."""
    lines = []
    for process in job.processes:
        error = process.clock.error / 1000
        exact = f"clock within {error:.0f} us" if error < float("inf") else "clock not known"
        lost = f", {process.dropped} left out" if process.dropped else ""
        end = "" if process.complete else ", ended before it could close its file"
        where = f" on {process.host}" if process.host else ""
        lines.append(f"{process.name}{where}: {len(process.events)} events{lost}, {exact}{end}")
    return lines


def _opened(path: str) -> TextIO:
    if path.endswith(".gz"):
        return gzip.open(path, "wt", compresslevel=3)
    return open(path, "w")
