"""How keys are cut into slices and given to servers (csrc/slicer.h)."""
from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core


@st.composite
def tensors(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    """Arguments of slice_key that give at most about 2,000 slices."""
    element_bytes = draw(st.sampled_from([2, 4, 8]))
    slice_bytes = draw(st.integers(element_bytes, 1 << 20) | st.sampled_from([8, 64, 200_000]))
    elements = draw(st.integers(0, 2000 * (slice_bytes // element_bytes)))
    return (
        draw(st.integers(0, 2**64 - 1)),
        elements,
        element_bytes,
        slice_bytes,
        draw(st.integers(1, 64)),
    )


@given(tensors())
def test_every_element_is_in_exactly_one_slice_in_order(tensor: tuple[int, ...]) -> None:
    elements = tensor[1]
    end = 0
    for position, (index, offset, length, _) in enumerate(_core.slice_key(*tensor)):
        assert index == position
        assert offset == end
        end += length
    assert end == elements


@given(tensors())
def test_no_slice_is_over_the_limit_and_lengths_differ_by_at_most_one(
    tensor: tuple[int, ...]
) -> None:
    _, _, element_bytes, slice_bytes, _ = tensor
    lengths = [length for _, _, length, _ in _core.slice_key(*tensor)]
    assert max(lengths) * element_bytes <= slice_bytes
    assert max(lengths) - min(lengths) <= 1


@given(tensors())
def test_there_are_as_few_slices_as_possible_or_equally_many_for_each_server(
    tensor: tuple[int, ...]
) -> None:
    _, elements, element_bytes, slice_bytes, servers = tensor
    lengths = [length for _, _, length, _ in _core.slice_key(*tensor)]
    fewest = max(1, -(-elements // (slice_bytes // element_bytes)))
    if len(lengths) != fewest:
        assert len(lengths) == -(-fewest // servers) * servers
        assert sum(lengths) * element_bytes >= len(lengths) * 16_384, "so small ones cost more"


@given(tensors())
def test_consecutive_slices_go_to_consecutive_servers(tensor: tuple[int, ...]) -> None:
    servers = tensor[4]
    ranks = [server for *_, server in _core.slice_key(*tensor)]
    assert 0 <= ranks[0] < servers
    assert ranks == [(ranks[0] + i) % servers for i in range(len(ranks))]


@given(st.lists(tensors(), max_size=5))
def test_placement_does_not_depend_on_what_was_sliced_before(keys: list[tuple[int, ...]]) -> None:
    forwards = [_core.slice_key(*key) for key in keys]
    backwards = [_core.slice_key(*key) for key in reversed(keys)]
    assert forwards == backwards[::-1]


@given(st.integers(0, 2**64 - 1), st.sampled_from([2, 4, 8]), st.integers(1, 64))
def test_a_key_without_elements_has_one_empty_slice(
    key: int, element_bytes: int, servers: int
) -> None:
    ((index, offset, length, server),) = _core.slice_key(key, 0, element_bytes, 200_000, servers)
    assert (index, offset, length) == (0, 0, 0)
    assert 0 <= server < servers


def test_sizes_are_64_bit() -> None:
    slices = _core.slice_key(0, 3 << 40, 8, 1 << 40, 7)
    assert len(slices) == 28
    assert slices[-1][1] + slices[-1][2] == 3 << 40


def resnet50() -> list[int]:
    """Elements of ResNet-50's parameters, layer by layer."""
    sizes = [64 * 3 * 7 * 7, 64, 64]
    channels = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            convolutions = [
                (channels * width, width),
                (width * width * 9, width),
                (width * width * 4, width * 4),
            ]
            if block == 0:
                convolutions.append((channels * width * 4, width * 4))
            for weights, outputs in convolutions:
                sizes += [weights, outputs, outputs]  # with batch normalisation's two
            channels = width * 4
    return [*sizes, 2048 * 1000, 1000]


def vgg19() -> list[int]:
    """Elements of VGG-19's parameters, layer by layer."""
    sizes = []
    channels = 3
    for layers, width in ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)):
        for _ in range(layers):
            sizes += [channels * width * 9, width]
            channels = width
    for inputs, outputs in ((25088, 4096), (4096, 4096), (4096, 1000)):
        sizes += [inputs * outputs, outputs]
    return sizes


@pytest.mark.parametrize("servers", [2, 3, 4, 8])
@pytest.mark.parametrize(
    ("sizes", "parameters"), [(resnet50(), 25_557_032), (vgg19(), 143_667_240)]
)
def test_servers_get_almost_equally_many_bytes_of_a_model(
    sizes: list[int], parameters: int, servers: int
) -> None:
    assert sum(sizes) == parameters
    load: Counter[int] = Counter()
    for key, elements in enumerate(sizes):
        for _, _, length, server in _core.slice_key(key, elements, 4, 200_000, servers):
            load[server] += 4 * length
    assert max(load.values()) <= 1.02 * 4 * parameters / servers


@pytest.mark.parametrize("servers", [2, 3, 4])
def test_a_pattern_of_small_layers_as_long_as_the_number_of_servers_is_spread_too(
    servers: int
) -> None:
    load: Counter[int] = Counter()
    for key in range(0, 300 * servers, servers):
        ((_, _, length, server),) = _core.slice_key(key, 4000, 4, 200_000, servers)
        load[server] += length
    assert max(load.values()) < 1.3 * sum(load.values()) / servers


@pytest.mark.parametrize(
    ("element_bytes", "slice_bytes", "servers"), [(0, 8, 1), (4, 3, 1), (4, 0, 1), (4, 8, 0)]
)
def test_bad_arguments_are_refused_with_their_values(
    element_bytes: int, slice_bytes: int, servers: int
) -> None:
    with pytest.raises(ValueError, match=f"{element_bytes} bytes .*{slice_bytes} .*{servers}"):
        _core.slice_key(1, 10, element_bytes, slice_bytes, servers)


@pytest.mark.parametrize("elements", [-1, 2**64])
def test_a_size_out_of_range_is_refused(elements: int) -> None:
    with pytest.raises(TypeError):
        _core.slice_key(1, elements, 4, 8, 1)
