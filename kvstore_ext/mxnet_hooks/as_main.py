"""Runs a script or module in this interpreter as if the interpreter had been started on it.

The standard library's runpy.run_path and run_module come close, but they take the module __main__
away when its last line is done, while threads and exit handlers may still pickle its classes; and
they give sys.argv[0] and __file__ the same value. The function behind python -m does neither.
"""
from __future__ import annotations

import builtins
import functools
import io
import os
import pkgutil
import runpy
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

_Hook = Callable[[Type[BaseException], BaseException, Optional[TracebackType]], Any]


def run_script(script: str, arguments: List[str]) -> None:
    """Runs a file, or a directory or zip archive with a __main__.py, as python SCRIPT does.

    Exits with status 2 where the file cannot be read; raises what the script raises.
    """
    sys.argv[:] = [script, *arguments]
    file = os.path.abspath(script) if sys.version_info >= (3, 9) else script
    main = _new_main()
    if pkgutil.get_importer(file) is not None:
        sys.path[: _directories_of_own()] = [file]
        _run(runpy._run_module_as_main, "__main__", False)  # type: ignore[attr-defined]
        return
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {file!r}: {reason}", file=sys.stderr)
        sys.exit(2)
    import_from_directory_of(script)
    main.__file__ = file
    main.__loader__ = SourceFileLoader("__main__", file)
    _run(_execute, source, file, vars(main))


def run_module(module: str, arguments: List[str]) -> None:
    """Runs a module or package as python -m MODULE does.

    Exits with status 1 where there is none of that name; raises what the module raises.
    """
    sys.argv[:] = ["-m", *arguments]
    _new_main()
    _run(runpy._run_module_as_main, module)  # type: ignore[attr-defined]


def import_from_directory_of(script: str) -> None:
    """Has modules searched beside the script, rather than in the working directory."""
    if _directories_of_own():
        sys.path[0] = os.path.dirname(os.path.realpath(script))


def _directories_of_own() -> int:
    """How many entries the interpreter has put at the start of sys.path for what it runs."""
    return 0 if getattr(sys.flags, "safe_path", sys.flags.isolated) else 1


def _new_main() -> ModuleType:
    main = ModuleType("__main__")
    vars(main).update(__builtins__=builtins, __annotations__={}, __cached__=None)
    sys.modules["__main__"] = main
    return main


def _execute(source: bytes, file: str, names: Dict[str, Any]) -> None:
    exec(compile(source, file, "exec", dont_inherit=True), names)


def _run(function: Callable[..., Any], *arguments: Any) -> None:
    try:
        function(*arguments)
    except BaseException:
        # Only now, so that the script finds the hook that it knows, and may set one of its own.
        sys.excepthook = functools.partial(_report, sys.excepthook)
        raise


def _report(
    hook: _Hook, kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
) -> None:
    """Reports what the script has raised without the functions through which it was run."""
    while trace is not None and trace.tb_frame.f_globals is not globals():
        trace = trace.tb_next
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    sys.last_traceback = trace
    hook(kind, error.with_traceback(trace), trace)
