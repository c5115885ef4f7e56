"""What a worker asks a server's Python, and what it is answered (question_desk.py)."""
from __future__ import annotations

import json
from typing import Any, Dict, Tuple

from .. import _core
from ..errors import ClusterError, KVStoreError


def ask(
    worker: _core.Worker, server: int, name: str, asked: Dict[str, Any], data: bytes = b""
) -> int:
    """Asks whoever answers to this name on a server; returns the question's number at once."""
    return worker.ask(server, json.dumps([name, asked]), data)


def answer_to(worker: _core.Worker, question: int) -> Tuple[Dict[str, Any], bytes]:
    """Waits for the answer to a question.

    Raises
    ------
    ClusterError
        Where none comes in time; it names the server, as the other one does.
    KVStoreError
        Where the server could not do what it was asked.
    """
    try:
        server, text, data = worker.await_answer(question)
    except RuntimeError as error:
        raise ClusterError(str(error)) from None
    answer = json.loads(text)
    if "error" in answer:
        raise KVStoreError(f"server {server} could not do what it was asked: {answer['error']}")
    return answer, data
