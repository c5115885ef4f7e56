"""What a store has sent and received, and where its time went: P3Worker.stats()."""
from __future__ import annotations

from typing import Any, Dict

from .. import _core
from ..compression.store_method import StoreMethod


def statistics(worker: _core.Worker, method: StoreMethod) -> Dict[str, Any]:
    """As P3Worker.stats() describes it."""
    totals = worker.totals()
    sent, received = worker.traffic()
    messages_sent, messages_received = worker.messages()
    return {
        "sent": sent,
        "received": received,
        "messages_sent": messages_sent,
        "messages_received": messages_received,
        "shared_memory": sum(worker.shared_bytes()),
        "ratio": totals.plain_bytes / totals.encoded_bytes if totals.encoded_bytes else 1.0,
        "zeros": method.zeros(),
        "zero_counts": method.zero_counts(),
        "scalers": method.scalers(),
        "excluded": method.excluded(),
        "non_finite": totals.non_finite,
        "refused": worker.refused(),
        "strangers": _core.strangers(),
        "foreign": _core.foreign_messages(),
        "encode": totals.encode,
        "queue": totals.queue,
        "wire": totals.wire,
        "decode": totals.decode,
    }
