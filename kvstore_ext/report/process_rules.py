"""Advice on computing: of all workers, of single ones, and of servers."""
from __future__ import annotations

from typing import Optional

import numpy as np

from . import words
from .advice import HELD_UP, Advice, on_one_host, waits_enough
from .analysis import Analysis
from .causes import Cause

_SLOWER = 1.1  # times the median of the others
_SOME = 0.3  # of all waiting
_MOSTLY = 0.7  # of all gradients
_UNSEEN = 0.2  # of all waiting


def nothing_to_gain(found: Analysis) -> Optional[Advice]:
    """Workers hardly wait."""
    if found.share_at_most >= HELD_UP:
        return None
    at_most = "" if found.layers_known else "at most "
    return Advice(
        f"Workers wait for {at_most}{words.per_cent(found.share_at_most)} of a step.",
        "The network does not hold this job up. Only faster computing or faster loading of data "
        "makes a step shorter.",
        "time",
    )


def straggler(found: Analysis) -> Optional[Advice]:
    """One worker computes for longer, and others wait for its gradients."""
    known = [worker for worker in found.workers if worker.computing == worker.computing]
    if len(known) < 2:
        return None
    slowest = max(known, key=lambda worker: worker.held_up)
    others = float(np.median([one.computing for one in known if one is not slowest]))
    if slowest.held_up < HELD_UP / 2 * found.step or slowest.computing < _SLOWER * others:
        return None
    look = "at that worker's host: its clock rate and load, how it loads data, and"
    if on_one_host(found):
        look = "at what else takes this host's processors, how that worker loads data, and"
    return Advice(
        f"Worker {slowest.rank} computes {words.seconds(slowest.computing)} a step, the others "
        f"{words.seconds(others)} in the median; workers wait {words.seconds(slowest.held_up)} a "
        "step for its gradients.",
        f"Look {look} whether its batches are larger.",
        "workers",
    )


def taking_turns(found: Analysis) -> Optional[Advice]:
    """Workers wait for each other's gradients, and none of them is the slow one."""
    late = float(found.causes.by_cause()[Cause.GRADIENT])
    share = found.share_of_waiting(late)
    if not waits_enough(found) or share < _SOME or straggler(found) is not None:
        return None
    shares = [worker.last for worker in found.workers if worker.last == worker.last]
    if len(shares) < 2 or max(shares) > _MOSTLY:
        return None
    hosts = "this host" if on_one_host(found) else "their hosts"
    return Advice(
        f"{words.per_cent(share)} of all waiting is for gradients that another worker has not "
        "computed yet, and no worker is always the slow one.",
        "Workers take turns in being last: look at batches of uneven size, at loading, and at "
        f"what else runs on {hosts}.",
        "workers",
    )


def slow_servers(found: Analysis) -> Optional[Advice]:
    """Adding up and updating takes much of the waiting."""
    by_server = found.causes.by_server()
    share = found.share_of_waiting(sum(by_server.values()))
    if not waits_enough(found) or share < _SOME:
        return None
    worst = max(found.servers, key=lambda server: server.held_up)
    updates = any(server.updating > 0 for server in found.servers)
    return Advice(
        f"{words.per_cent(share)} of all waiting is for servers that add up and update; half of "
        f"the slices take server {worst.rank} {words.seconds(worst.answer)} or longer.",
        "Take more servers, or hosts with more processors that are free for them"
        + (", or an optimizer that does less." if updates else "."),
        "servers",
    )


def busy_processors(found: Analysis) -> Optional[Advice]:
    """Workers wait for their own encoding and decoding."""
    by_cause = found.causes.by_cause()
    share = found.share_of_waiting(float(by_cause[Cause.ENCODING] + by_cause[Cause.WRITING]))
    if not waits_enough(found) or share < _SOME:
        return None
    plain = all(method.is_plain for method in found.methods)
    return Advice(
        f"{words.per_cent(share)} of all waiting is for workers' processors that make slices "
        "ready to travel, or write what came.",
        "Leave the store a processor that computing does not use"
        + ("." if plain else ", or take a compression that costs less."),
        "time",
    )


def agreeing(found: Analysis) -> Optional[Advice]:
    """Workers wait until all have looked at a gradient and agreed on its scaler."""
    share = found.share_of_waiting(float(found.causes.by_cause()[Cause.PREPARING]))
    sharing = [one for one in found.methods if one.agreeing > one.encoding]
    if not waits_enough(found) or share < _SOME or not sharing:
        return None
    return Advice(
        f"{words.per_cent(share)} of all waiting is for looking at gradients and agreeing on their "
        f"scalers; with {sharing[0].name} agreeing takes {words.seconds(sharing[0].agreeing)} a "
        "step, added up over keys.",
        "A scaler needs a round trip, and all workers' gradients of its key. The option "
        "scaler_sharing turns that off, and a method without shared scalers has none.",
        "compression",
    )


def unseen(found: Analysis) -> Optional[Advice]:
    """The trace lacks what would tell the causes."""
    share = found.share_of_waiting(float(found.causes.by_cause()[Cause.UNSEEN]))
    if not waits_enough(found) or share < _UNSEEN:
        return None
    return Advice(
        f"For {words.per_cent(share)} of all waiting this trace does not tell the cause.",
        f"The clocks of {words.listed(found.apart)} are not known, since no ping connects them "
        "with the others: trace a job of which all processes have begun before the steps that "
        "count."
        if found.apart
        else "Put the files of all workers and servers into one directory, and trace fewer steps "
        "where events were left out.",
        "basis",
    )
