#!/usr/bin/env python3
"""Shows how fast the codecs are, compared with copying the same array in memory.

    OMP_NUM_THREADS=1 python benchmarks/codecs.py

Prints, for each step of each codec and for each set of kernels that the processor can run, the
time of a copy divided by the time of the step: 0.5 takes twice as long as a copy; with --seconds,
the time of the step. Times are the shortest processor times of several, taken by turns on one
thread. The array is float32, normally distributed, and worked on in slices of 4 MiB; scalers and
selections are of the whole array.

--against names an interpreter that has another version of kvstore_ext: both measure in turns, three
times each, with the last of the kernels. Prints medians of the ratios, and each.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Callable, Dict, Iterator, List, Tuple

import numpy as np
from kvstore_ext import _core
from launched import in_turns

Step = Tuple[str, Callable[[], object]]
SLICE = 2**20  # elements
NAME = 36  # letters of a step's, in the table
JOBS = 3  # of each interpreter
P3_SLICE = 50_000  # those of p3, by default


def slices(array: np.ndarray) -> List[np.ndarray]:
    """Views of the array's slices."""
    return [array[start : start + SLICE] for start in range(0, array.size, SLICE)]


def encoding(encode: Callable[[np.ndarray], object], array: np.ndarray) -> Callable[[], None]:
    """Encodes slice by slice; what is not kept leaves its memory to the next slice, as in a job."""

    def run() -> None:
        for part in slices(array):
            encode(part)

    return run


def adding(codec: _core.Codec, total: np.ndarray, encoded: List[bytes]) -> Callable[[], None]:
    """Adds what was encoded, slice by slice."""

    def add() -> None:
        for part, data in zip(slices(total), encoded):
            codec.add_to(part, data)

    return add


TERNGRAD = "terngrad clip_sigma=2.5 scaler_sharing=1 seed=0"


def terngrad(array: np.ndarray, draws: _core.Draws) -> Iterator[Step]:
    """A worker's two passes, the server's sum, and the sum's way back for jobs of several sizes."""
    codec = _core.Codec(TERNGRAD, 1)
    scaler = codec.scaler(array)
    encode = encoding(lambda part: codec.encode(part, scaler, draws), array)
    encoded = [codec.encode(part, scaler, draws) for part in slices(array)]
    yield "scaler and encode", lambda: (codec.scaler(array), encode())
    yield "add", adding(codec, np.zeros_like(array), encoded)
    for workers in (1, 2, 3, 4, 8, 16, 64):
        yield from terngrad_sum(array, draws, workers)


def terngrad_sum(array: np.ndarray, draws: _core.Draws, workers: int) -> Iterator[Step]:
    """Encoding and decoding a sum over so many workers, who all have sent the same."""
    codec = _core.Codec(TERNGRAD, workers)
    scaler = codec.scaler(array)
    total = np.zeros_like(array)
    add = adding(codec, total, [codec.encode(part, scaler, draws) for part in slices(array)])
    for _ in range(workers):
        add()

    encoded = [codec.encode_sum(part, scaler, draws) or b"" for part in slices(total)]

    def decode() -> None:
        for part, data in zip(slices(total), encoded):
            codec.decode_sum(part.size, data)

    encode = encoding(lambda part: codec.encode_sum(part, scaler, draws), total)
    yield f"encode sum of {workers}", encode
    yield f"decode sum of {workers}", decode


def plain(specification: str) -> Callable[[np.ndarray, _core.Draws], Iterator[Step]]:
    """Encoding and adding of a codec whose sums travel as gradients do, or as they are."""

    def steps(array: np.ndarray, draws: _core.Draws) -> Iterator[Step]:
        codec = _core.Codec(specification, 4)
        encoded = [codec.encode(part, 0, draws) for part in slices(array)]
        yield "encode", encoding(lambda part: codec.encode(part, 0, draws), array)
        yield "add", adding(codec, np.zeros_like(array), encoded)

    return steps


def selection(array: np.ndarray, draws: _core.Draws) -> Iterator[Step]:
    """The choice of what deep gradient compression sends."""
    del draws
    for share in (0.001, 0.01, 0.25):
        count = int(array.size * share)
        yield f"select {share:.1%}", lambda: _core.select_largest(array, count)  # noqa: B023


def core(array: np.ndarray, draws: _core.Draws) -> Iterator[Step]:
    """What servers compute to choose Slim-DP's core, a fifth, among parameters and updates; their
    magnitudes they have added up when updates came."""
    del draws
    name, size = (0, 0), array.size // 5
    snapshots = _core.CoreSelection({name: (array, array[::-1])})

    def choose() -> None:
        sample = snapshots.sample(1.0, -(-array.size // _core.BRACKET_SAMPLE))
        above = snapshots.divide(*_core.bracket_of(sample, array.size, size))
        counts = snapshots.count_upper()
        upper = int(np.flatnonzero(np.cumsum(counts[::-1])[::-1] >= size - above)[-1])
        above += int(counts[upper + 1 :].sum())
        counts = snapshots.count_lower(upper)
        lower = int(np.flatnonzero(np.cumsum(counts[::-1])[::-1] >= size - above)[-1])
        bits = upper << 16 | lower
        snapshots.choose(bits, snapshots.count_equal(bits))

    yield "choose the core", choose


def whole(array: np.ndarray, draws: _core.Draws) -> Iterator[Step]:
    """What the option non_finite does with gradients that travel as they are."""
    del draws
    yield "non_finite", lambda: _core.all_finite(array)
    for name in ("float16", "float64"):  # as many bytes
        other = np.resize(array.astype(name), array.nbytes // np.dtype(name).itemsize)
        yield f"non_finite, {name}", lambda: _core.all_finite(other)  # noqa: B023


def checksum(array: np.ndarray, draws: _core.Draws) -> Iterator[Step]:
    """What the option checksum does with all that is sent, and again with what comes; the same
    whatever the kernels, since the processor has an instruction for it, or has not."""
    del draws
    parts = [array[start : start + P3_SLICE] for start in range(0, array.size, P3_SLICE)]
    yield "of each slice", lambda: [_core.crc32c(part) for part in parts]
    yield "without the instruction", lambda: _core.crc32c(array, by_table=True)


CODECS: Dict[str, Callable[[np.ndarray, _core.Draws], Iterator[Step]]] = {
    "p3": whole,
    "checksum": checksum,
    "terngrad": terngrad,
    "qsgd 8 bits": plain("qsgd bits=8 bucket=512 norm=l2 seed=0 error_feedback=0"),
    "qsgd 4 bits": plain("qsgd bits=4 bucket=512 norm=l2 seed=0 error_feedback=0"),
    "onebit": plain("onebit bucket=512 error_feedback=0"),
    "signsgd": plain("signsgd scale=1 seed=0"),
    "fp16": plain("fp16 error_feedback=0"),
    "2bit": plain("2bit threshold=0.5"),
    "dgc": selection,
    "slim_dp": core,
}


def seconds(step: Callable[[], object]) -> float:
    started = time.thread_time()
    step()
    return time.thread_time() - started


def measure(
    step: Callable[[], object], copy: Callable[[], object], repeats: int
) -> Tuple[float, float]:
    """The shortest copy's time divided by the shortest step's, and that."""
    times = [(seconds(copy), seconds(step)) for _ in range(repeats)]
    shortest = min(time for _, time in times)
    return min(time for time, _ in times) / shortest, shortest


def found_by(python: str, arguments: argparse.Namespace) -> Dict[str, float]:
    """What another process finds, by step, with the last of the kernels."""
    command = [os.path.abspath(python), str(Path(__file__).resolve()),
               "--elements", str(arguments.elements), "--repeats", str(arguments.repeats),
               "--kernels", arguments.kernels[-1], "--codecs", *arguments.codecs]
    with tempfile.TemporaryDirectory() as directory:  # which has no package of a checkout's
        table = subprocess.run(command, check=True, cwd=directory, stdout=subprocess.PIPE,
                               text=True).stdout.splitlines()[2:]
    return {line[:NAME].strip(): float(line[NAME:]) for line in table}


def compare(arguments: argparse.Namespace) -> None:
    """Prints what both interpreters have found."""
    pythons = {"the other": arguments.against, "this one": sys.executable}
    jobs = in_turns(pythons, JOBS, lambda which: found_by(pythons[which], arguments))
    for step in jobs["this one"][0]:
        print(f"{step:{NAME}}", end="")
        for which, found in jobs.items():
            ratios = [job[step] for job in found]
            each = " ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f" {which} {median(ratios):.3f} ({each})", end="")
        print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=64 * 2**20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", action="store_true", help="that a step takes, not its ratio")
    parser.add_argument("--kernels", nargs="*", default=_core.kernels(), help="default: all")
    parser.add_argument("--codecs", nargs="*", default=list(CODECS), help="default: all")
    parser.add_argument("--against", metavar="PYTHON", help="compare with its kvstore_ext")
    arguments = parser.parse_args()
    if arguments.against and arguments.seconds:
        parser.error("--against compares ratios, not --seconds")
    if arguments.against:
        compare(arguments)
        return 0
    array = np.random.default_rng(0).standard_normal(arguments.elements, dtype=np.float32)
    other = np.zeros_like(array)
    draws = _core.Draws(0, 0, 0, 1)

    def copy() -> None:
        np.copyto(other, array)

    rate = array.nbytes / min(seconds(copy) for _ in range(arguments.repeats)) / 1e9
    print(f"{arguments.elements} elements; a copy runs at {rate:.1f} GB/s")
    print(f"{'':{NAME}}", *(f"{name:>8}" for name in arguments.kernels))
    for codec in arguments.codecs:
        for name, step in CODECS[codec](array, draws):
            print(f"{codec + ', ' + name:{NAME}}", end="")
            for kernels in arguments.kernels:
                _core.use_kernels(kernels)
                ratio, shortest = measure(step, copy, arguments.repeats)
                print(f" {shortest if arguments.seconds else ratio:8.3f}", end="", flush=True)
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
