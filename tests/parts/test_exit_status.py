"""What is known at exit of how a script has ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvstore_ext.store.shutdown import _crash

from tests.support.processes import run_python

# A script that takes care of SIGTERM itself once a store has done so, or not; and what a fork has.
FORKS = """
import os, signal
from kvstore_ext.protocol.end_signal import EndSignal

def mine(number, frame):
    pass

EndSignal.listen(lambda: None)
{takes}
if os.fork() == 0:
    found = signal.getsignal(signal.SIGTERM)
    print(found is mine, found == signal.SIG_DFL, signal.set_wakeup_fd(-1), flush=True)
    os._exit(0)
os.wait()
"""


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


@pytest.mark.parametrize(
    ("takes", "found"), [("", "False True"), ("signal.signal(signal.SIGTERM, mine)", "True False")]
)
def test_a_fork_keeps_the_scripts_own_handler_of_sigterm(takes: str, found: str) -> None:
    assert run_python("-c", FORKS.format(takes=takes)).stdout.strip() == f"{found} -1"


def test_an_error_is_told_without_its_notes() -> None:
    error = LookupError("no more batches")
    error.__notes__ = ["while reading shard 7"]  # as add_note has it, from Python 3.11 on
    assert _crash(error) == "its script failed: LookupError: no more batches"
