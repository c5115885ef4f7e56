# PYTHON_ARGCOMPLETE_OK
"""The command kvstore-ext: runs a script in which mx.kv.create knows the stores of kvstore_ext.

    kvstore-ext train.py --kv-store p3
    python -m kvstore_run train.py --kv-store p3

Both do the same, and so does `python -m kvstore_ext` where the package can be imported. The
launcher starts every process of a job by the second one. It lies beside kvstore_ext because Python
takes the first package of that name, and -m looks in the working directory first. One that was
never compiled, such as a checkout's, would hide the one that is installed; here it does not count.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import shlex
import sys
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any, Iterator, List, Tuple

_PACKAGE = "kvstore_ext"
# By what asks for them, as the first argument. A script of such a name is run as ./NAME.
_PARTS = {"--check": "check", "trace": "trace", "report": "report",
          "predict": "predict"}  # fmt: skip
_HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Runs what sys.argv names; exits with status 2 for arguments that are wrong."""
    part = _PARTS.get("".join(sys.argv[1:2]))
    if part is not None:
        _run_part(part)
        return
    found = _parse(sys.argv[1:])
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = os.getcwd()  # as with -m; a console command begins with its own directory
    try:
        with _compiled_package_first():
            if find_spec(_PACKAGE) is None:
                sys.exit(
                    f"kvstore-ext: no kvstore_ext is compiled for {sys.executable}: "
                    f"pip install {shlex.quote(_HERE)}, if that is a checkout"
                )
            from kvstore_ext.mxnet_hooks import before_import

            alone = before_import.serves_scheduler()
            if alone:
                from kvstore_ext.server import scheduler
            else:
                from kvstore_ext.mxnet_hooks import runner
    except ImportError as error:
        if error.name != _PACKAGE:
            raise
        sys.exit(f"kvstore-ext: {error}")  # it says what to type
    if alone:
        scheduler.main()
    else:
        runner.main(found)


def _run_part(part: str) -> None:
    """Runs a part of the package that needs neither its core nor mxnet."""
    del sys.argv[1]
    run = runpy.run_path(os.path.join(_HERE, _PACKAGE, "by_place.py"))["run"]
    run(f"{part}.main", sys.argv[1:])


@contextmanager
def _compiled_package_first() -> Iterator[None]:
    """Has packages of this name that are not compiled for this Python passed over."""
    before = list(sys.path)
    sys.path[:] = [entry for entry in before if not _is_uncompiled(entry)]
    try:
        yield
    finally:
        sys.path[:] = before


def _is_uncompiled(entry: str) -> bool:
    package = PathFinder.find_spec(_PACKAGE, [entry])
    if package is None:
        return False
    places = list(package.submodule_search_locations or [])
    return PathFinder.find_spec(f"{_PACKAGE}._core", places) is None


def _parse(arguments: List[str]) -> argparse.Namespace:
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # by the shell, which waits for what may come next
        import argcomplete

        argcomplete.autocomplete(parser)
    found = parser.parse_args(arguments)
    if found.command[:1] == ["--"]:
        del found.command[0]
    if found.every and not found.snapshot:
        parser.error("argument --every: only with --snapshot DIR")
    if found.join and found.snapshot:
        parser.error(
            "argument --snapshot: not with --join, where workers have different numbers of steps"
        )
    found.every = found.every or 100
    if not found.command and not found.list and not found.serve:
        parser.error(f"no {'module' if found.module else 'script'} to run")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvstore-ext",
        usage="%(prog)s [--replace NAME=STORE] [--trust MODULE] [--join | --snapshot DIR "
        "[--every STEPS]] SCRIPT ... | -m MODULE ...\n"
        "       %(prog)s --serve [--trust MODULE]\n"
        "       %(prog)s --list\n"
        "       %(prog)s trace DIR [-o FILE]\n"
        "       %(prog)s report DIR [-o FILE] [--bandwidth GBIT]\n"
        "       %(prog)s predict (--model NAME | --trace DIR | --profile SCRIPT) ...\n"
        "       %(prog)s --check ...",
        description="Run a script or module in which mx.kv.create knows the stores of kvstore_ext. "
        "A server or scheduler, as DMLC_ROLE says, runs that in its place.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    repeated: Any = {"action": "append", "default": []}
    about = "mx.kv.create(NAME) makes STORE; dist_sync=p3, say; may be repeated"
    add("--replace", type=_replacement, metavar="NAME=STORE", help=about, **repeated)
    about = "workers may have different numbers of batches: call store.join() where they end"
    add("--join", action="store_true", help=about)
    about = "for servers: a module of optimizers that workers may send; may be repeated"
    add("--trust", metavar="MODULE", help=about, **repeated)
    about = "go on from the last snapshot in this directory, which all workers see, and take others"
    add("--snapshot", metavar="DIR", help=about)
    about = "steps from one snapshot to the next; 100 unless given"
    add("--every", type=_steps, metavar="STEPS", help=about)
    add("--serve", action="store_true", help="run the server or scheduler, without any script")
    add("--version", action="version", version=f"%(prog)s {_version()}")
    add("--list", action="store_true", help="list stores, their options, and ways to compress")
    about = "tell whether this host, and others, are fit; --check --help says more"
    add("--check", action="store_true", help=about)
    add("-m", dest="module", action="store_true", help="a module is run, as by python -m")
    add("command", nargs=argparse.REMAINDER, metavar="...", help="the script and its arguments")
    return parser


def _version() -> str:
    """The installed one's, also where that cannot be imported."""
    return str(runpy.run_path(os.path.join(_HERE, _PACKAGE, "version.py"))["__version__"])


def _replacement(text: str) -> Tuple[str, str]:
    """The two names in the form in which MXNet looks them up."""
    if not re.fullmatch(r"\w+=\w+", text):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed is NAME=STORE")
    name, store = text.lower().split("=")
    return name, store


def _steps(text: str) -> int:
    if not re.fullmatch("[0-9]+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}', allowed is a whole number 1 or more")
    return int(text)


if __name__ == "__main__":
    main()
