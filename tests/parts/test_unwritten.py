"""What a script has left in open files reaches them where its process ends by os._exit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.paths import python_path

LIMIT = 60.0  # seconds

# Nobody reads the pipe, which is full: who writes to it waits for ever.
SCRIPT = """
import os
from kvstore_ext.unwritten import PartialFile, write_out

text, binary, both = open("text", "w"), open("binary", "wb"), open("both", "w+b")
ours = PartialFile(open("ours", "wb", buffering=0))
_, writing = os.pipe()
os.set_blocking(writing, False)
try:
    while True:
        os.write(writing, bytes(65536))
except BlockingIOError:
    os.set_blocking(writing, True)
pipe = open(writing, "wb")
text.write("some words")
for file in (binary, both, ours, pipe):
    file.write(b"some bytes")
closed = open("closed", "wb")
closed.close()
write_out()
os._exit(3)
"""


def test_files_are_written_out_and_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": python_path()}
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, timeout=LIMIT)
    assert ended.returncode == 3
    assert (tmp_path / "text").read_text() == "some words"
    assert (tmp_path / "binary").read_bytes() == b"some bytes"
    assert (tmp_path / "both").read_bytes() == b"some bytes"
    assert (tmp_path / "ours").read_bytes() == b""
