"""How a task knows that its launcher, and nobody in between, has given it an order.

Launcher and task agree on a key when they get to know each other (proof.py). The proof of an order
is the HMAC by that, with SHA-256, of its number on this connection and of what it says. What
follows the order to run, and what the task says, has none.
"""

from __future__ import annotations

import hmac
import json
from typing import Any

NAME = "KVSTORE_EXT_LAUNCH_ORDERS"  # by which a task's supervisor gets the key


class Orders:
    """One end's: those of a connection, in turn."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._count = 0

    def prove(self, order: dict[str, Any]) -> dict[str, Any]:
        """Returns the next order with its proof."""
        return {**order, "proof": self._proof(order)}

    def check(self, order: dict[str, Any]) -> dict[str, Any]:
        """Returns the next order without its proof; raises ValueError where that is none."""
        said = {name: value for name, value in order.items() if name != "proof"}
        proof = order.get("proof")
        if not isinstance(proof, str) or not hmac.compare_digest(
            proof.encode(), self._proof(said).encode()
        ):
            raise ValueError("this order is not the launcher's: somebody is in between")
        return said

    def _proof(self, order: dict[str, Any]) -> str:
        text = json.dumps([self._count, order], sort_keys=True)
        self._count += 1
        return hmac.new(self._key, text.encode(), "sha256").hexdigest()
