"""What a job costs each of its processes as hosts become more, with a model of next to no bytes.

To be read in this order:

    run        one job on so many hosts, in namespaces, and what is measured of it
    worker     its workers, which measure themselves and what else their host has
    processes  what Linux knows of a process and of a host's network
    fits       lines through what was measured, and where they lead to

The picture and its numbers are `benchmarks/figures/growth.py`.
"""
