"""A launcher that takes a trace slowly gets all of it."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import time
import zlib
from pathlib import Path

from kvstore_ext.launcher.far_ends import supervisor_command
from kvstore_ext.launcher.protocol import GREETING, encode

from .jobs import REPORT

SILENCE = 3.0  # seconds
PIECE, PAUSE = 65536, 0.1  # bytes, and seconds after each


def test_a_trace_that_takes_longer_than_silence_may_comes_whole(tmp_path: Path) -> None:
    # Reading it takes twice as long as the launcher may be silent.
    content = os.urandom(round(2 * SILENCE / PAUSE) * PIECE)
    (tmp_path / "worker-0.events").write_bytes(content)
    (tmp_path / "worker-0.json").write_bytes(b"")
    traced = json.dumps({"traced": str(tmp_path / "worker-0")})
    order = {
        "command": ["sh", "-c", f"{REPORT} {shlex.quote(traced)}"],
        "environment": {"KVSTORE_EXT_TRACE": "."},
        "directory": str(tmp_path),
        "silence": SILENCE,
        "trace": {"mark": "mark"},
    }
    command = supervisor_command(sys.executable)
    with subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as supervisor:
        order_to, said = supervisor.stdin, supervisor.stdout
        assert order_to
        assert said
        order_to.write(encode({"run": order}))
        lines = (line for line in iter(said.readline, b"") if line != GREETING)
        assert any("ended" in json.loads(line) for line in lines)
        order_to.close()
        pieces = []
        for piece in iter(lambda: said.read(PIECE), b""):
            pieces.append(piece)
            time.sleep(PAUSE)
    arrived = events_in(b"".join(pieces))
    assert len(arrived) == len(content)
    assert arrived == content


def events_in(said: bytes) -> bytes:
    """What came of the events' file."""
    stream, arrived = io.BytesIO(said), b""
    for line in iter(stream.readline, b""):
        message = json.loads(line)
        payload = stream.read(message.get("size", 0))
        if message.get("traced") == "worker-0.events":
            arrived += zlib.decompressobj().decompress(payload)
    return arrived
