"""The bytes in which digits, codes and values travel, in NumPy. Everything is little endian."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

DGC_BLOCK = 1 << 16  # elements whose indices fit in 16 bits


def floats(values: np.ndarray | np.float32) -> bytes:
    """As float32."""
    return np.asarray(values, "<f4").tobytes()


def take_floats(data: bytes, count: int) -> tuple[np.ndarray, bytes]:
    """The first so many float32, and the bytes after them."""
    assert len(data) >= 4 * count
    return np.frombuffer(data[: 4 * count], "<f4"), data[4 * count :]


def word_size(base: int) -> tuple[int, int]:
    """For digits of a base: a word's bytes, and how many digits it holds.

    The fewest bytes that waste at most 2 %, or else those that waste least.
    """
    sizes = []
    for word_bytes in range(1, 12):
        digits = max(n for n in range(12 * 8) if base**n <= 1 << 8 * word_bytes)
        if digits == 0:
            continue
        if 8 * word_bytes / digits <= math.log2(base) * 1.02:
            return word_bytes, digits
        sizes.append((8 * word_bytes / digits, word_bytes, digits))
    _, word_bytes, digits = min(sizes)
    return word_bytes, digits


def _kind(word_bytes: int) -> Any:
    """What holds whole numbers of so many bytes: NumPy's type, or Python's own of any length."""
    return np.uint64 if word_bytes <= 8 else object


def _words(digits: np.ndarray, base: int, per_word: int, words: int) -> list[int]:
    """Word j has the digits j, words + j, 2 words + j and so on; the last words may have fewer."""
    kind = _kind(8 if base**per_word <= 1 << 64 else 9)
    table = np.zeros((per_word, words), kind)
    table.reshape(-1)[: digits.size] = digits.tolist()
    powers = np.array([base**k for k in range(per_word)], kind)
    return (table * powers[:, None]).sum(axis=0).tolist()


def pack_digits(digits: np.ndarray, base: int, word_bytes: int, per_word: int, lanes: int) -> bytes:
    """Digits from 0 to base - 1 in words, in blocks of `lanes` words and a shorter one."""
    block = per_word * lanes
    packed = []
    for begin in range(0, digits.size, block):
        part = digits[begin : begin + block]
        words = _words(part, base, per_word, min(lanes, -(-part.size // per_word)))
        packed += [word.to_bytes(word_bytes, "little") for word in words]
    return b"".join(packed)


def unpack_digits(
    data: bytes, elements: int, base: int, word_bytes: int, per_word: int, lanes: int
) -> np.ndarray:
    """What pack_digits was given, int64."""
    parts = [data[begin : begin + word_bytes] for begin in range(0, len(data), word_bytes)]
    words = np.array([int.from_bytes(part, "little") for part in parts], _kind(word_bytes))
    digits = []
    left = elements
    for begin in range(0, words.size, lanes):
        rest = words[begin : begin + lanes].copy()
        for _ in range(per_word):
            count = min(left, rest.size)
            digits.append((rest[:count] % base).astype(np.int64))
            left -= count
            rest //= base
    assert left == 0
    return np.concatenate([np.zeros(0, np.int64), *digits])


def pack_ternary(scaler: np.float32, digits: np.ndarray) -> bytes:
    """A scaler and digits from -1 to 1, five a byte."""
    return floats(scaler) + pack_digits(digits + 1, 3, 1, 5, 32)


def unpack_ternary(data: bytes, elements: int) -> tuple[np.float32, np.ndarray]:
    """What pack_ternary was given."""
    (scaler,), rest = take_floats(data, 1)
    return scaler, unpack_digits(rest, elements, 3, 1, 5, 32) - 1


def pack_sum(scaler: np.float32, digits: np.ndarray, workers: int) -> bytes:
    """A scaler and digits from -workers to workers."""
    base = 2 * workers + 1
    return floats(scaler) + pack_digits(digits + workers, base, *word_size(base), 64)


def unpack_sum(data: bytes, elements: int, workers: int) -> tuple[np.float32, np.ndarray]:
    """What pack_sum was given."""
    base = 2 * workers + 1
    (scaler,), rest = take_floats(data, 1)
    return scaler, unpack_digits(rest, elements, base, *word_size(base), 64) - workers


def pack_bits(codes: np.ndarray, bits: int) -> bytes:
    """Codes of so many bits one after the other, from the least significant bit on."""
    shifts = np.arange(bits, dtype=np.uint64)
    table = codes.astype(np.uint64)[:, None] >> shifts & np.uint64(1)
    return np.packbits(table.astype(np.uint8).reshape(-1), bitorder="little").tobytes()


def unpack_bits(data: bytes, elements: int, bits: int) -> np.ndarray:
    """What pack_bits was given, int64."""
    assert len(data) == -(-elements * bits // 8)
    table = np.unpackbits(np.frombuffer(data, np.uint8), count=elements * bits, bitorder="little")
    return table.reshape(elements, bits).astype(np.int64) @ (1 << np.arange(bits))


def pack_sparse(values: np.ndarray, indices: np.ndarray) -> bytes:
    """Each block's number of selected elements, all their indices in their blocks, all values."""
    blocks = -(-values.size // DGC_BLOCK)
    counts = np.bincount(indices // DGC_BLOCK, minlength=blocks)
    places = (indices % DGC_BLOCK).astype("<u2")
    return counts.astype("<u4").tobytes() + places.tobytes() + floats(values[indices])


def unpack_sparse(data: bytes, elements: int) -> np.ndarray:
    """The values, 0 where none was selected, float32."""
    blocks = -(-elements // DGC_BLOCK)
    counts = np.frombuffer(data[: 4 * blocks], "<u4").astype(np.int64)
    data = data[4 * blocks :]
    selected = int(counts.sum())
    assert len(data) == 6 * selected
    places = np.frombuffer(data[: 2 * selected], "<u2").astype(np.int64)
    values = np.zeros(elements, np.float32)
    indices = np.repeat(np.arange(blocks) * DGC_BLOCK, counts) + places
    values[indices] = np.frombuffer(data[2 * selected :], "<f4")
    return values
