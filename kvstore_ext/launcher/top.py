"""`kvstore-launch top JOBDIR`: a running job's processes as a table, anew each second."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time

from .account import size
from .output import note, show
from .status import Row, line, pace
from .watching import EVERY, NAME

_COLUMNS = "process      host              state     steps  steps/s  waiting    late  "
_COLUMNS += "   sent/s  received/s    held"
_FRESH = 5.0  # seconds after which the figures of a job that runs are missing
_BEGINNING, _REST = "\x1b[H", "\x1b[J"  # ANSI: go to the first place; erase what is behind


def main(arguments: list[str]) -> int:
    """Returns 0 once the job is over, 1 where its launcher has gone, 2 where there is no job."""
    parser = argparse.ArgumentParser(
        prog="kvstore-launch top", description="Show what the processes of a running job do."
    )
    parser.add_argument("directory", metavar="JOBDIR", help="the job's logs, as its first line has")
    parser.add_argument("--once", action="store_true", help="show one table, and end")
    found = parser.parse_args(arguments)
    drawn = sys.stdout.isatty() and not found.once
    try:
        status = read(found.directory)
        if drawn:
            show("\x1b[2J" + _BEGINNING)
        while drawn and _runs(status):
            show(_BEGINNING + _fitting(table(status)) + _REST)
            time.sleep(EVERY)
            status = read(found.directory)
    except ValueError as error:
        note(str(error))
        return 2
    except KeyboardInterrupt:
        return 0
    show((_BEGINNING + _REST if drawn else "") + table(status))
    return 0 if status["state"] == "over" or _runs(status) else 1


def read(directory: str) -> Row:
    """Returns the figures of the job with these logs; raises ValueError where there is none."""
    try:
        with open(os.path.join(directory, NAME)) as file:
            status = dict(json.load(file))
            table(status)
            return status
    except OSError as error:
        reason = f"{directory} is no directory of a job's logs: {NAME}: {error.strerror}"
        raise ValueError(f"{reason}; the launcher's first line names it") from None
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{directory}: {NAME} is none of a job's figures") from None


def table(status: Row) -> str:
    """Returns what is known of a job, in lines."""
    if status["state"] == "over":
        failure = status["failure"]
        head = f"the job {'failed' if failure else 'ended well'} {_ago(status)} ago"
        head += f": {failure}" if failure else ""
    elif _runs(status):
        head = line(status)
    else:
        head = f"no figures for {_ago(status)}: the launcher was killed or is stopped, or says why"
    return "\n".join([head, "", _COLUMNS, *map(_line, status["processes"])])


def _line(row: Row) -> str:
    worker, scheduler = row["role"] == "worker", row["role"] == "scheduler"
    steps = f"{row['steps']:>7}  {pace(row['steps_rate']):>7}  {row['waiting']:>7.0%}  "
    steps += f"{row['late']:>5.2f}s"
    name = f"{row['role']} {row['rank']}"
    rates = f"{size(round(row['sent_rate'])):>9}  {size(round(row['received_rate'])):>10}"
    held = f"{size(row['held']):>8}" if row["role"] == "server" else ""
    text = f"{name:<11}  {_shown(row['host']):<16}  {row['state']:<7}"
    figures = "" if scheduler else f"{steps if worker else ' ' * 32}  {rates}{held}"
    return f"{text}{figures}".rstrip()


def _shown(host: str) -> str:
    return host if len(host) <= 16 else f"{host[:15]}~"


def _fitting(text: str) -> str:
    """Returns as much as the terminal can show at a time, each line erasing the one before."""
    columns, rows = shutil.get_terminal_size()
    lines = text.split("\n")
    if len(lines) > rows - 1:
        lines = [*lines[: rows - 2], f"... and {len(lines) - rows + 2} more"]
    return "\n".join(f"{each[: columns - 1]}\x1b[K" for each in lines)


def _runs(status: Row) -> bool:
    return status["state"] == "running" and time.time() - status["time"] < _FRESH


def _ago(status: Row) -> str:
    return f"{max(0.0, time.time() - status['time']):.0f} s"
