"""What the launcher's options may be, each with what is said of anything else."""

from __future__ import annotations

import argparse
import os
import re
import shlex

from .environment import OWN_NAMES
from .job_key import NAME as JOB_KEY

LAUNCHERS = ("local", "ssh", "mpi", "slurm")

# Clusters that dmlc-core's tracker or MXNet's tools/launch.py know.
_OTHER_CLUSTERS = ("yarn", "sge", "mesos", "kubernetes", "byteps")


def launcher(text: str) -> str:
    """A way to start processes."""
    if text in LAUNCHERS:
        return text
    more = ""
    if text in _OTHER_CLUSTERS:
        more = "; there, start one process a role with the variables of MXNet (DMLC_ROLE ...)"
    raise argparse.ArgumentTypeError(f"found '{text}', allowed are {', '.join(LAUNCHERS)}{more}")


def count(text: str) -> int:
    """How many processes."""
    if not re.fullmatch(r"\d+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are whole numbers from 1")
    return int(text)


def number(text: str) -> int:
    """A worker's number, or how often something may be done."""
    if not re.fullmatch(r"\d+", text):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are whole numbers from 0")
    return int(text)


def steps(text: str) -> str:
    """Which steps are traced: from one to before another."""
    found = re.fullmatch(r"(\d+):(\d+)", text)
    if found is None or not 1 <= int(found[1]) < int(found[2]):
        raise argparse.ArgumentTypeError(
            f"found '{text}', allowed is A:B, such as 50:60 for the steps 50 to 59"
        )
    return text


def port(text: str) -> int:
    """A TCP port."""
    if not re.fullmatch(r"\d+", text) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are 1 to 65535")
    return int(text)


def seconds(text: str) -> float:
    """A duration."""
    if not re.fullmatch(r"\d+(\.\d*)?", text) or not 0 < float(text) <= 1e6:
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are seconds above 0")
    return float(text)


def assignment(text: str) -> tuple[str, str]:
    """A variable for all processes: KEY=VALUE, or as in MXNet's launcher the name of one here."""
    name, equals, value = text.partition("=")
    if not equals and name in os.environ:
        value = os.environ[name]
    elif not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise argparse.ArgumentTypeError(
            f"found '{text}', allowed is KEY=VALUE, or a variable that is set here"
        )
    return _foreign(name, value), value


def role_assignment(text: str) -> tuple[str, str]:
    """A variable for processes of one role, as for all, or KEY:VALUE as in MXNet's launcher."""
    if text in os.environ:
        return _foreign(text, os.environ[text]), os.environ[text]
    match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)[=:](.*)", text, re.DOTALL)
    if not match:
        raise argparse.ArgumentTypeError(
            f"found '{text}', allowed are KEY=VALUE, KEY:VALUE, or a variable that is set here"
        )
    return _foreign(match[1], match[2]), match[2]


def _foreign(name: str, value: str) -> str:
    if name == JOB_KEY:
        raise argparse.ArgumentTypeError(
            f"{name} would be seen on the command line: set it in the launcher's environment, or "
            "have --secure make one"
        )
    # Processes are given addresses, by --interface, so that ps-lite never looks at this one.
    if name == "DMLC_INTERFACE" and value != os.environ.get(name):
        raise argparse.ArgumentTypeError(f"{name} is set by the launcher (see --interface)")
    if name in OWN_NAMES:
        options = "-n, -s, --port, --notice"
        raise argparse.ArgumentTypeError(f"{name} is set by the launcher (see {options})")
    return name


def replacement(text: str) -> str:
    """A store for another one's name; which stores there are only the runner knows."""
    if not re.fullmatch(r"\w+=\w+", text):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed is NAME=STORE")
    return text


def far_directory(text: str) -> str:
    """A directory on another host: absolute, or below the home there."""
    path = text[2:] if text.startswith("~/") else text
    if not path or path.startswith("~"):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are a path and ~/PATH")
    return path


def words(text: str) -> list[str]:
    """A command, or several options, as a shell would take them apart."""
    try:
        found = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None
    if not found:
        raise argparse.ArgumentTypeError("found nothing but blanks")
    return found
