"""The parts of the page on keys: what was waited for, their order, their compression."""
from __future__ import annotations

from typing import Tuple

from . import words
from .analysis import Analysis
from .html import table
from .order import Place
from .section import Section, folded, note


def layers_section(found: Analysis) -> Section:
    """The keys that were waited for."""
    by_key = found.causes.by_key()
    sizes = {place.key: place.bytes for place in found.order.places}
    whole = max(1, sum(sizes.values()))
    ordered = sorted(by_key, key=lambda key: -by_key[key])
    rows = [
        (found.key_name(key), words.seconds(by_key[key] / found.count),
         words.per_cent(found.share_of_waiting(by_key[key])), words.amount(sizes.get(key, 0)),
         words.per_cent(sizes.get(key, 0) / whole))
        for key in ordered
    ]  # fmt: skip
    heads = ("key (layer)", "waits a step", "of all waiting", "size", "of all bytes")
    about = "The keys whose results a forward pass waited for, of all workers and steps."
    return Section("layers", "Which layers were waited for", about, folded(heads, rows))


def order_section(found: Analysis) -> Section:
    """In which order keys travel."""
    places = found.order.places
    about = (
        "Keys in the order in which they travel, which is learned in the first steps, and the "
        "place at which the forward pass needs them."
    )
    if found.order.agreeing == found.order.agreeing:
        agreeing = words.per_cent(found.order.agreeing)
        about += f" {agreeing} of the pairs of layers travel in the order in which they are needed."
    else:
        about += " That place is not known, as layers are not in the trace."

    def row(place: Place) -> Tuple[str, ...]:
        return (found.key_name(place.key), str(place.sent), str(place.needed or words.NOTHING),
                words.amount(place.bytes))  # fmt: skip

    heads = ("key (layer)", "travels as", "needed as", "size")
    return Section("order", "The order", about, folded(heads, [row(place) for place in places]))


def compression_section(found: Analysis) -> Section:
    """What it costs and saves."""
    rows = [
        (one.name, str(one.keys), words.amount(one.plain_bytes), words.amount(one.pushed_bytes),
         words.amount(one.result_bytes), words.seconds(one.encoding), words.seconds(one.decoding),
         words.seconds(one.serving), words.seconds(one.saved_seconds(found.links.gigabits)))
        for one in found.methods
    ]  # fmt: skip
    heads = ("method", "keys", "as numbers", "pushed", "results", "encode", "decode", "servers",
             "saves on a link")  # fmt: skip
    about = (
        "What a worker's gradients of a step are as numbers, and what travelled each way; the "
        "time of its processor to encode and to decode or write, and of all servers' to add up. "
    )
    if found.exchanges_known or found.links.given:
        carried = words.gigabits(found.links.gigabits)
        about += f"What it saves is for a link that carries {carried} each way."
    agreeing = [
        note(f"With {one.name} workers agree on scalers, for {words.seconds(one.agreeing)} a step, "
              "added up over keys.")
        for one in found.methods if one.agreeing
    ]  # fmt: skip
    if all(one.is_plain for one in found.methods):
        about = "Nothing is compressed. " + about
    return Section("compression", "What compression costs and saves", about,
                   [table(heads, rows), *agreeing] if rows else [])  # fmt: skip
