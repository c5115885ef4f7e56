#!/usr/bin/env python3
"""Where p3's processor time goes while gradients move: what perf sees of unshaped.py, by kind.

    python benchmarks/where_time_goes.py --network vgg19

Needs perf, from Debian's linux-perf, and a kernel that lets its user count. Runs the job twice,
with few steps and with many, and takes the difference, which leaves out starting and ending. Prints
processor seconds for each gigabyte (10**9 bytes) that a worker pushes and pulls, with shared memory
and without it. While interrupts are off nothing is counted; what comes then is counted with what
follows, which is mostly that threads are switched.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Iterator, List, Tuple

from unshaped import BYTES, WORKERS, sizes

UNSHAPED = Path(__file__).with_name("unshaped.py")
FREQUENCY = 499  # samples of a processor's second
# Of the first that fits: where a function lies, its name, and what it does.
KINDS = (
    (r"kernel", r"copy_(from|to)_iter|copy_user|rep_movs", "the kernel copies what travels"),
    (r"kernel", r"tcp|inet|sock|skb|softirq|loopback|csum|(^|_)(ip|sk|dev|nf|net|netif)_",
     "the kernel's network"),
    (r"kernel", r"fault|page|memcg|mm_|pte|vma|mas_|folio|lru|clear_", "the kernel gives memory"),
    (r"kernel", r"", "threads wait, wake and switch; the kernel's rest"),
    (r"^libc\.|^libstdc", r"mem(move|cpy|set)", "copying in memory"),
    (r"^libc\.|^libstdc", r"alloc|free|_int_|unlink_chunk|new|delete", "allocating"),
    (r"^libc\.|^libstdc|^ld-|vdso", r"", "libc's rest: locks, clocks, polling"),
    (r"^_core", r"AddTo", "adding up"),
    (r"^_core", r"", "the core's rest"),
    (r"^libmxnet", r"^(zmq|ps)::|protobuf", "ZeroMQ and ps-lite"),
    (r"^libmxnet", r"", "MXNet"),
    (r"python", r"", "Python"),
)
OTHER = "other libraries"


def kind_of(library: str, function: str) -> str:
    """What a sample was taken of, in words."""
    for where, what, kind in KINDS:
        if re.search(where, library) and re.search(what, function):
            return kind
    return OTHER


def samples(text: str) -> Iterator[Tuple[str, str]]:
    """The library and the function of each of perf's samples."""
    for line in text.splitlines():
        found = re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", line)
        if found:
            yield found[2].rpartition("/")[2].strip("[]"), found[1]


def seconds(steps: int, arguments: argparse.Namespace, options: str) -> Counter[str]:
    """Processor seconds of a job's processes, by kind."""
    with tempfile.TemporaryDirectory() as directory:
        data = f"{directory}/perf.data"
        job = [sys.executable, str(UNSHAPED), "--network", arguments.network, "--arms", "p3",
               "--ways", arguments.way, "--repeats", "1", "--steps", str(steps),
               "--options", options]
        record = ["perf", "record", "-q", "-F", str(FREQUENCY), "-o", data, "--", *job]
        subprocess.run(record, check=True, stdout=subprocess.DEVNULL)
        text = subprocess.run(
            ["perf", "script", "-i", data, "-F", "ip,sym,dso"],
            check=True, capture_output=True, text=True, errors="replace",
        ).stdout
    counts = Counter(kind_of(*sample) for sample in samples(text))
    return Counter({kind: count / FREQUENCY for kind, count in counts.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--network", default="vgg19", help="of kvstore_ext/predict/networks")
    parser.add_argument("--way", default="sums", choices=("sums", "optimizer"))
    parser.add_argument("--steps", type=int, default=20, help="that are looked at; default: 20")
    arguments = parser.parse_args()
    gigabytes = WORKERS * 2 * BYTES * sum(sizes(arguments.network)) * arguments.steps / 1e9
    columns: List[Counter[str]] = []
    for options in ('{"shared_memory": false}', '{"shared_memory": true}'):
        few, many = (seconds(steps, arguments, options) for steps in (1, 1 + arguments.steps))
        few.subtract(many)
        columns.append(Counter({kind: -value / gigabytes for kind, value in few.items()}))
    kinds = [kind for _, _, kind in KINDS] + [OTHER]
    print("| processor seconds for a GB | by the network | by shared memory |")
    print("| --- | ---: | ---: |")
    for kind in dict.fromkeys(kinds):
        print(f"| {kind} | {columns[0][kind]:.2f} | {columns[1][kind]:.2f} |")
    print(f"| all | {sum(columns[0].values()):.2f} | {sum(columns[1].values()):.2f} |")


if __name__ == "__main__":
    main()
