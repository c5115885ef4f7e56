"""A trace of the whole job: what every process has recorded, and what is made of it.

events.py says what is recorded, reading.py reads a directory of it, clocks.py brings the clocks
together, and merging.py makes a file for Perfetto of it. It imports no other room.
"""
