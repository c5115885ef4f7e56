"""Whether the store that was ahead is predicted ahead: `p3` beside each of its peers."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Sequence, Tuple

from kvstore_ext.predict.table import markdown

from benchmarks.prediction.compared import Compared, per_cent
from benchmarks.prediction.settings import Setting

OWN, PEERS = "p3", ("dist_sync", "stock_p3", "horovod")
LEAD = 0.01  # one that is more than noise
_HEAD = ("setting", "beside", "measured", "predicted")


def leads(found: Sequence[Compared]) -> List[str]:
    """Lines of a document: how often the order is right, and a table of where it is not.

    Parameters
    ----------
    found : sequence of Compared
        Of all arms.
    """
    pairs = _pairs(found)
    measured = [(_lead(own.measured.middle, peer.measured.middle),
                 _lead(own.predicted, peer.predicted)) for own, peer in pairs]  # fmt: skip
    shown = [(each, expected) for each, expected in measured if abs(each) >= LEAD]
    right = sum(each * expected > 0 for each, expected in shown)
    rows = [
        (own.measured.setting.named(), peer.measured.setting.arm,
         per_cent(each), per_cent(expected))
        for (own, peer), (each, expected) in zip(pairs, measured)
        if each * expected < 0 and max(abs(each), abs(expected)) >= LEAD
    ]  # fmt: skip
    return [
        f"`{OWN}` was ahead of a peer, or behind it, by {100 * LEAD:.0f} % or more "
        f"{len(shown)} times, and {right} times it is predicted so. These are all leads of `{OWN}` "
        f"that are predicted otherwise than they were measured, where either is "
        f"{100 * LEAD:.0f} % or more of the seconds of an iteration:",
        "",
        *markdown(_HEAD, rows),
    ]


def _pairs(found: Sequence[Compared]) -> List[Tuple[Compared, Compared]]:
    """Settings of `p3` and of a peer that differ in nothing else."""
    own: Dict[Setting, Compared] = {}
    for each in found:
        if each.measured.setting.arm == OWN:
            own[each.measured.setting] = each
    pairs = []
    for peer in found:
        alike = replace(peer.measured.setting, arm=OWN)
        if peer.measured.setting.arm in PEERS and alike in own:
            pairs.append((own[alike], peer))
    return pairs


def _lead(own: float, peer: float) -> float:
    """By how much `p3` is faster, of seconds of an iteration."""
    return peer / own - 1
