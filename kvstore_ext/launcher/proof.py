"""How a task and its launcher know each other: by the job's token, which neither of them says.

    task to launcher    {"number": 3, "nonce": ...}
    launcher to task    {"nonce": ..., "proof": ...}
    task to launcher    {"proof": ...}

Each a line. A proof is the HMAC by the token, with SHA-256, of who proves it, the task's number and
both nonces, so that none is good for anybody else or another time. The key of the launcher's orders
(orders.py) is made likewise: who only hands on what both say does not have it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import time
from typing import Any, NamedTuple

_LONGEST = 1000  # bytes of a line


class Task(NamedTuple):
    """Whom a launcher has recognised: its number, and the key of orders to it."""

    number: int
    key: str


def introduce(connection: socket.socket, number: int, token: str, limit: float) -> str:
    """Is the task's part: returns the key of the launcher's orders.

    Raises ValueError or OSError where the other end is not its launcher. `limit`: seconds that this
    has to answer.
    """
    own = secrets.token_hex(16)
    _send(connection, {"number": number, "nonce": own})
    answer = _read(_line(connection, time.monotonic() + limit))
    other = _word(answer, "nonce")
    _check(answer, _proof(token, "launcher", number, own, other))
    _send(connection, {"proof": _proof(token, "task", number, own, other)})
    return _proof(token, "orders", number, own, other)


async def recognise(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str
) -> Task:
    """Is the launcher's part: returns a task of the job.

    Raises ValueError or OSError for anybody else.
    """
    hello = _read(await reader.readline())
    number, other, own = hello.get("number"), _word(hello, "nonce"), secrets.token_hex(16)
    if not isinstance(number, int):
        raise ValueError("it does not say its number")
    answer = {"nonce": own, "proof": _proof(token, "launcher", number, other, own)}
    writer.write(json.dumps(answer).encode() + b"\n")
    _check(_read(await reader.readline()), _proof(token, "task", number, other, own))
    return Task(number, _proof(token, "orders", number, other, own))


def _read(line: bytes) -> dict[str, Any]:
    """Returns what a line says; raises ValueError for whatever is no JSON object."""
    try:
        found = json.loads(line)
    except RecursionError:
        raise ValueError("what it says is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("what it says is no JSON object")
    return found


def _word(said: dict[str, Any], name: str) -> str:
    word = said.get(name)
    if not isinstance(word, str):
        raise ValueError(f"it does not say its {name}")
    return word


def _check(said: dict[str, Any], proof: str) -> None:
    if not hmac.compare_digest(_word(said, "proof").encode(), proof.encode()):
        raise ValueError("it does not know the job's token")


def _proof(token: str, who: str, number: int, task_nonce: str, launcher_nonce: str) -> str:
    text = json.dumps([who, number, task_nonce, launcher_nonce])
    return hmac.new(token.encode(), text.encode(), "sha256").hexdigest()


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _line(connection: socket.socket, latest: float) -> bytes:
    """Returns a line; nothing comes behind it before it is answered."""
    line = b""
    while not line.endswith(b"\n"):
        connection.settimeout(max(0.001, latest - time.monotonic()))
        piece = connection.recv(_LONGEST)
        line += piece
        if not piece or len(line) > _LONGEST:
            raise ValueError("it does not answer as the launcher does")
    return line
