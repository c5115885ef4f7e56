"""What a store has sent and received, and where its time went: P3.stats()."""
from __future__ import annotations

from typing import Any, Dict, Mapping

from . import _core
from .arrays import KeyArrays
from .keys import Key


def report(worker: _core.Worker, keys: Mapping[Key, KeyArrays]) -> Dict[str, Any]:
    """As P3.stats() describes it."""
    totals = worker.totals()
    sent, received = worker.traffic()
    compressed = {name: key for name, key in keys.items() if key.compressed}
    elements = sum(key.elements for key in compressed.values())
    zeros = sum(key.codec.zeros() * key.elements for key in compressed.values())
    scalers = [(name, key.codec.scaler()) for name, key in compressed.items()]
    return {
        "sent": sent,
        "received": received,
        "ratio": totals.plain_bytes / totals.encoded_bytes if totals.encoded_bytes else 1.0,
        "zeros": zeros / elements if elements else 0.0,
        "scalers": {name: scaler for name, scaler in scalers if scaler > 0},
        "non_finite": totals.non_finite,
        "encode": totals.encode,
        "queue": totals.queue,
        "wire": totals.wire,
        "decode": totals.decode,
    }
