"""What is known at exit of how a script has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes import run_python

# What a script ends with, and the status that its handlers at exit are told.
ENDS = {
    "pass": 0,
    "sys.exit()": 0,
    "sys.exit(0)": 0,
    "sys.exit(3)": 3,
    "sys.exit('no more batches')": 1,
    "raise SystemExit": 0,
    "raise SystemExit(0)": 0,
    "raise SystemExit(4)": 4,
    "raise SystemExit('no more batches')": 1,
    "exit(5)": 5,
    "import argparse; argparse.ArgumentParser().error('no')": 2,
    "raise LookupError('no more batches')": 1,
    "give_up()": 6,
    "give_up_and_go_on()": 0,
}

# One interpreter, since importing mxnet takes time; a fork for each way to end.
SCRIPT = """
import atexit, gc, os, sys
import kvstore_ext
from kvstore_ext.store.shutdown import _exit_status

def give_up():
    try:
        sys.exit(6)
    finally:
        print('cleaned up')

def give_up_and_go_on():
    try:
        sys.exit(6)
    except SystemExit:
        pass

gc.freeze()  # or each fork would go through all of it again, in memory of its own
for number, end in enumerate({ends!r}):
    sys.stdout.flush()
    if os.fork() == 0:
        atexit.register(lambda: print('told', number, _exit_status(), flush=True))
        exec(end)
        break
    print('ended', number, os.WEXITSTATUS(os.wait()[1]))
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    script: Path = tmp_path_factory.mktemp("exits") / "script.py"
    script.write_text(SCRIPT.format(ends=list(ENDS)))
    return run_python(script).stdout


@pytest.mark.parametrize("end", ENDS)
def test_the_status_is_the_one_that_the_process_has(output: str, end: str) -> None:
    number = list(ENDS).index(end)
    assert f"told {number} {ENDS[end]}\n" in output
    assert f"ended {number} {ENDS[end]}\n" in output
