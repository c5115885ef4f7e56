"""Jobs with one thing each that holds them up, or nothing."""
from __future__ import annotations

from tests.report.made_jobs import Key, Made

SMALL = [Key("conv1", 0, 100_000), Key("conv2", 1, 200_000), Key("dense", 0, 100_000)]

# Computing takes 18 ms of a step, and nothing else takes long.
COMPUTE_BOUND = Made(SMALL, servers=2)
# Worker 1 takes twice as long as the others.
STRAGGLING = Made(SMALL, workers=3, servers=2, slower={1: 2.0})
# Server 2 has 8 of 10 MB.
UNEVEN = Made(
    [Key("conv1", 0), Key("conv2", 1), Key("dense1", 2, 3_000_000), Key("dense2", 2, 5_000_000)],
    servers=3,
    rate=4e5,
)
# All servers have as many bytes, and the link of server 1 has a tenth of the others' rate.
SLOW_LINK = Made([Key("conv1", 0), Key("conv2", 1), Key("dense", 2)], servers=3, rates={1: 1e5})
# 8 MB a step from two workers, both ways, through one link of 0.8 Gbit/s.
FULL_LINK = Made([Key("conv1", 0), Key("dense", 0, 3_000_000)], rate=1e5)
# The first layer has nearly all bytes.
HEAVY_FIRST = Made([Key("embedding", 0, 4_000_000), *SMALL[1:]], servers=2, rate=4e5)
# The script pushes once all gradients are there.
LATE_PUSHES = Made([Key("conv1"), Key("conv2"), Key("dense")], rate=3e5, waits_for_all=True)
# Servers take 20 ms to update.
SLOW_SERVERS = Made(SMALL, servers=2, updating=20.0)
# Encoding takes 20 ms, and saves 1 ms on the link.
ENCODED = [Key(name, travels=31_250, method="terngrad block=64") for name in "abc"]
COSTLY = Made(ENCODED, encoding=20.0)
# Decoding takes 20 ms, by a call of its own.
COSTLY_TO_PULL = Made(ENCODED, writing=20.0, in_two_calls=True)
# The same, encoded in 0.1 ms, on a link of 0.8 Gbit/s.
WORTHWHILE = Made(ENCODED, encoding=0.1, rate=1e5)
