"""Advice on the network: full links, uneven links, long ways."""
from __future__ import annotations

from typing import Dict, List, Optional

import numpy as np

from ..trace.events import Kind
from . import words
from .advice import Advice, waits_enough
from .analysis import Analysis
from .causes import Cause
from .links import End

_MUCH = 0.3  # of all waiting, or of the most
_UNEVEN = 1.3  # times what the others have
_NEARLY_FULL = 0.7  # of what a link can carry
_HALF = 0.5


def uneven_servers(found: Analysis) -> Optional[Advice]:
    """One server's link has work for much longer than the others'."""
    if not waits_enough(found) or len(found.servers) < 2:
        return None
    for sends in (False, True):
        ends = [found.links.of(f"server {server.rank}", sends) for server in found.servers]
        known = sorted((end for end in ends if end is not None), key=lambda end: -end.at_work)
        if len(known) < 2 or _share_of_server(found, known[0].name) < _MUCH:
            continue
        first, second = known[0], known[1]
        if first.at_work >= _UNEVEN * second.at_work:
            usual = float(np.mean([end.under_way for end in known[1:]]))
            return _uneven(found, first, second.at_work, usual)
    return None


def _share_of_server(found: Analysis, name: str) -> float:
    """Of all waiting, how much is for its links."""
    by_link = found.causes.by_link()
    mine = sum(by_link[link] for link in by_link if f"server {link[1]}" == name)
    return found.share_of_waiting(mine)


def _uneven(found: Analysis, end: End, others: float, usual: float) -> Advice:
    way = "out of" if end.sends else "into"
    seen = (
        f"The link {way} {end.name} has work for {words.per_cent(end.at_work)} of the time, and "
        f"that of any other server for at most {words.per_cent(others)}; "
        f"{words.per_cent(_share_of_server(found, end.name))} of all waiting is for links of "
        f"{end.name}"
    )
    if end.under_way * _UNEVEN < usual:
        ratio = words.per_cent(end.under_way / usual)
        return Advice(
            f"{seen}. While bytes are under way it carries {ratio} of what theirs carry then.",
            "It is slower than theirs: look at that host's link, and at what else uses it.",
            "links",
        )
    server = int(end.name.split()[1])
    names = [found.key_name(key) for key in _heaviest_keys(found, server)]
    return Advice(
        f"{seen}: {_lie(names)} there." if names else f"{seen}.",
        "Smaller slices (option slice_bytes) share large keys out more evenly, and more servers "
        "have less of each.",
        "links",
    )


def _lie(names: List[str]) -> str:
    if len(names) == 1:
        return f"key {names[0]} lies"
    return f"keys {words.listed(names)} lie"


def _heaviest_keys(found: Analysis, server: int) -> List[int]:
    """Those which have most bytes there beyond an even share, most first."""
    servers = len(found.servers)
    extra: Dict[int, float] = {}
    pushed = {place.key for place in found.order.places}
    for key, info in found.job.keys.items():
        if key not in pushed:
            continue
        here = sum(part.elements for part in info.slices if part.server == server)
        extra[key] = here - info.elements / servers
    least = _MUCH * max(extra.values(), default=0.0)
    return sorted((key for key in extra if extra[key] > least), key=lambda key: -extra[key])


def full_links(found: Analysis) -> Optional[Advice]:
    """Workers wait for links that carry about all they can."""
    fullest = _fullest(found)
    share = _share_of_links(found)
    if not waits_enough(found) or share < _HALF or fullest is None:
        return None
    links = found.links
    if fullest.under_way < _NEARLY_FULL * links.gigabits or found.links.share(fullest) < _HALF:
        return None
    most = words.gigabits(links.gigabits)
    of_what = "that you gave" if links.given else "that was seen at best"
    if links.share(fullest) > 1:
        of_what += ", so that links carry more than that"
    verb = "sends" if fullest.sends else "receives"
    return Advice(
        f"Workers wait for {words.per_cent(found.share_waiting)} of a step, "
        f"{words.per_cent(share)} of it for links; {fullest.name} {verb} "
        f"{words.gigabits(fullest.carried)} in the mean, {words.per_cent(links.share(fullest))} "
        f"of the {most} {of_what}.",
        _send_less(found, fullest),
        "links",
    )


def _send_less(found: Analysis, fullest: End) -> str:
    compressed = [method for method in found.methods if not method.is_plain]
    roles = {one.role for one in found.job.processes if fullest.name in (one.name, one.host)}
    more = ""
    if roles == {"server"}:
        more = ", or take more servers, each of which then has fewer bytes"
    if compressed:
        return f"Send still less: a method that compresses more{more}."
    wide = any(key.dtype != "float16" for key in found.job.keys.values())
    halves = "fp16 halves the bytes, " if wide else ""
    return f"Send less: {halves}terngrad and others send a few bits a number{more}."


def half_used_links(found: Analysis) -> Optional[Advice]:
    """Workers wait for links that have carried, or can carry, much more."""
    share, fullest, links = _share_of_links(found), _fullest(found), found.links
    if not waits_enough(found) or share < _HALF or fullest is None:
        return None
    fastest = max(end.under_way for end in links.hosts or links.processes)
    if fastest >= _HALF * links.gigabits:
        return None
    trip = _round_trip(found)
    trips = f" A round trip takes {words.seconds(trip)}." if trip else ""
    most = "that you gave" if links.given else "that was seen at best"
    return Advice(
        f"{words.per_cent(share)} of all waiting is for links, but while bytes are under way the "
        f"fastest carries {words.gigabits(fastest)} in the mean, of the "
        f"{words.gigabits(links.gigabits)} {most}.{trips}",
        "It is not the bandwidth: look at the round trip, at the load of the hosts' processors, "
        "and whether other jobs share the link.",
        "links",
    )


def _fullest(found: Analysis) -> Optional[End]:
    ends = found.links.hosts or found.links.processes
    return max(ends, key=lambda end: end.carried) if ends else None


def _share_of_links(found: Analysis) -> float:
    """Of all waiting."""
    by_cause = found.causes.by_cause()
    return found.share_of_waiting(float(by_cause[Cause.PUSH] + by_cause[Cause.RESULT]))


def _round_trip(found: Analysis) -> float:
    """The median of the pings, seconds; 0 without any."""
    trips = [
        np.subtract(pings["end"], pings["begin"])
        for pings in (worker.of_kind(Kind.CLOCK) for worker in found.job.workers)
    ]
    together = np.concatenate(trips) if trips else np.zeros(0)
    return float(np.median(together)) / 1e9 if len(together) else 0.0
