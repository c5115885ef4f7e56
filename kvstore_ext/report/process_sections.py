"""The parts of the page on workers, on servers, and on what was recorded."""
from __future__ import annotations

from typing import List

import numpy as np

from ..trace.events import Kind
from . import words
from .analysis import Analysis
from .html import table
from .section import Section, folded, more


def workers_section(found: Analysis) -> Section:
    """Who comes last."""
    rows = [
        (f"worker {one.rank}", words.seconds(one.computing), words.per_cent(one.last),
         words.seconds(one.late), words.seconds(one.held_up))
        for one in found.workers
    ]  # fmt: skip
    heads = ("worker", "computes", "comes last", "then late by", "waits for it")
    about = (
        "How long each worker computes in a step, the median; with which share of all gradients "
        "it came last, and how long after the one before it; how long workers waited for its "
        "gradients, a step."
    )
    return Section("workers", "Stragglers", about, folded(heads, rows))


def servers_section(found: Analysis) -> Section:
    """What servers have and how long they take."""
    rows = []
    for one in found.servers:
        sizes = sum(_bytes_at(found, one.rank))
        rows.append((f"server {one.rank}", words.amount(sizes), words.seconds(one.answer),
                     words.per_cent(one.updating), words.seconds(one.held_up)))  # fmt: skip
    heads = ("server", "has", "to answer", "optimizer", "waits for it")
    about = (
        "What lies on each server; how long it takes from the last worker's slice to the first "
        "answer, the median; the share of the time in which its optimizer computes, one slice or "
        "several; how long workers waited for it to add up and update, "
        "a step."
    )
    return Section("servers", "Servers", about, folded(heads, rows))


def _bytes_at(found: Analysis, server: int) -> List[float]:
    sizes = {place.key: place.bytes for place in found.order.places}
    return [
        part.elements * sizes.get(key, 0) / max(1, info.elements)
        for key, info in found.job.keys.items()
        for part in info.slices
        if part.server == server
    ]


def _without_trace(found: Analysis) -> List[str]:
    """Servers and workers that others have had to do with, and of which there is no trace."""
    job = found.job
    servers = {part.server for key in job.keys.values() for part in key.slices}
    workers = {
        int(peer)
        for server in job.servers
        for peer in np.unique(server.of_kind(Kind.RECEIVED)["peer"])
    }
    missing = [
        *(f"worker {rank}" for rank in sorted(workers - {each.rank for each in job.workers})),
        *(f"server {rank}" for rank in sorted(servers - {each.rank for each in job.servers})),
    ]
    return [name for name in missing if name not in found.apart]


def basis_section(found: Analysis) -> Section:
    """What was recorded, and how well."""
    rows = []
    for process in found.job.processes:
        error = process.clock.error / 1e9
        end = "" if process.complete else "cut off"
        events, left_out = str(len(process.events)), str(process.dropped)
        clock = "the same" if error == 0 else f"within {words.seconds(error)}"
        rows.append((process.name, process.host or words.NOTHING, end, events, left_out, clock))
    heads = ("process", "host", "end", "events", "left out", "clock")
    steps = [one.steps for one in found.iterations]
    notes = [f"{found.count} steps of {len(steps)} workers count."]
    warming = max(own.warming for own in steps)
    interrupted = sum(own.interrupted for own in steps)
    unrecorded = sum(own.unrecorded for own in steps)
    if found.apart:
        notes.append(f"Nothing counts {words.listed(found.apart)}, whose clocks no ping connects "
                     "with the others'.")  # fmt: skip
    missing = _without_trace(found)
    if missing:
        notes.append(
            f"{words.listed(missing)} took part, and left no files here: what they exchanged is "
            "missing in what links carried, and in the bytes of results."
        )
    if unrecorded:
        notes.append(f"{unrecorded} steps were left out that ended when {found.full} had no room "
                     "for events any more: trace fewer steps, or set trace_events.")  # fmt: skip
    if warming:
        notes.append(f"The first {warming} steps of a worker were left out: they warm up.")
    if interrupted:
        notes.append(f"{interrupted} steps were left out that took more than 4 times the median, "
                     "as with an evaluation between them.")  # fmt: skip
    notes.append("Until a layer's parameters are there the time counts as waiting, even where the "
                 "script had not come to that layer yet.")  # fmt: skip
    if len({process.host for process in found.job.processes}) == 1:
        notes.append(
            "All processes were on one host: they took each other's processors, and what links "
            "carried did not pass a network, unless each had one of its own."
        )
    options = found.job.workers[0].options if found.job.workers else {}
    told = [more("Options of the store", table(
        ("option", "value"), [(str(name), str(value)) for name, value in options.items()], names=2
    ))] if options else []  # fmt: skip
    return Section("basis", "What this rests on", " ".join(notes),
                   [*folded(heads, rows, names=3), *told])  # fmt: skip
