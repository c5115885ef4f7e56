"""Which server has which part of a key: the lane's rule, and MXNet's two.

Each is a function of keys, by their numbers, with their elements, and of the number of servers. It
returns for each key the pairs of a server and the elements that it has of the key.
"""
from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

Placement = List[List[Tuple[int, int]]]

SLICE_BYTES = 200_000  # the store's default (config.py)
_LEAST_SHARED_BYTES = 32768  # of a key, and
_LEAST_EVEN_BYTES = 2048  # of a slice: csrc/keys/slicer.cc
_BIG_ARRAY = 1_000_000  # elements: MXNET_KVSTORE_BIGARRAY_BOUND
_P3_SLICE = 40_000  # elements: MXNET_KVSTORE_SLICE_THRESHOLD
_MASK = (1 << 64) - 1


def lane(
    elements: Sequence[int],
    servers: int,
    element_bytes: float = 4.0,
    slice_bytes: int = SLICE_BYTES,
    alignment: int = 1,
) -> Placement:
    """As csrc/keys/slicer.cc cuts and deals keys that are numbered from 0.

    Parameters
    ----------
    elements : sequence of int
        Of each key.
    servers : int
    element_bytes : float
        Bytes that an element takes as it travels.
    slice_bytes : int
        Of a slice at most, as it travels.
    alignment : int
        Slices begin at multiples of so many elements.
    """
    placed = []
    for key, count in enumerate(elements):
        units = -(-count // alignment)
        most = max(1, int(slice_bytes / (element_bytes * alignment)))
        slices = max(1, -(-units // most))
        even = -(-slices // servers) * servers
        total = units * element_bytes * alignment
        large = total >= _LEAST_SHARED_BYTES and total / even >= _LEAST_EVEN_BYTES
        if large and even <= units:
            slices = even
        first = mix(key) % servers
        own, left, cut = units // slices, units % slices, []
        for index in range(slices):
            length = (own + (index < left)) * alignment
            cut.append(((first + index) % servers, length))
        cut[-1] = (cut[-1][0], count - sum(length for _, length in cut[:-1]))
        placed.append(cut)
    return placed


def stock(elements: Sequence[int], servers: int) -> Placement:
    """`dist_sync`: a key lies on one server, one of a million elements in equal parts on all."""
    placed = []
    for key, count in enumerate(elements):
        if count < _BIG_ARRAY:
            placed.append([(key * 9973 % servers, count)])
        else:
            ends = [round(count * (server + 1) / servers) for server in range(servers)]
            sizes = [end - begin for begin, end in zip([0, *ends], ends)]
            placed.append(list(enumerate(sizes)))
    return placed


def stock_p3(elements: Sequence[int], servers: int) -> Placement:
    """Stock P3: slices of equal sizes at most, dealt in turn as keys come."""
    placed, turn = [], 0
    for count in elements:
        slices = []
        for begin in range(0, max(count, 1), _P3_SLICE):
            slices.append((turn % servers, min(_P3_SLICE, count - begin)))
            turn += 1
        placed.append(slices)
    return placed


def mix(value: int) -> int:
    """The finaliser of splitmix64, as csrc/support/random.h has it."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def loads(placement: Placement, servers: int) -> Dict[int, int]:
    """Elements of each server."""
    found = dict.fromkeys(range(servers), 0)
    for key in placement:
        for server, elements in key:
            found[server] += elements
    return found
