"""A trace of the whole job: what every process records, and what is made of it.

events.py says what is recorded, and recording.py has a process do it; reading.py reads a directory
of that, clocks.py brings the clocks together, and merging.py makes a file for Perfetto of it, which
main.py is the command for; command.py is what commands on traces have in common. steps.py says
which steps are recorded, and networks.py has networks' layers looked at meanwhile. It imports
notes.py and no other room, and works without MXNet.
"""
