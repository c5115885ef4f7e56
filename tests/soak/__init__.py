"""Whether a job holds for long: rounds of small keys in jobs of 16 workers, one after another.

    make soak SOAK_FLAGS='--rounds 1000000 --most 1'    # the next leg alone

legs.py      what runs: every store and compression in turn, two of them while messages are lost
train.py     what a worker runs
looking.py   the memory, descriptors and threads of processes, and how fast they grow
__main__.py  runs the legs that no earlier call has run, and prints what came of each

build/soak/looks.jsonl has what was seen in the legs that have run. test_soak.py runs a few short
ones.
"""
