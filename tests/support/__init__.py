"""What tests share. To read in this order:

paths.py, processes.py   where things lie; single processes
cluster.py, forked.py    jobs: a scheduler, servers and workers
results.py               what workers leave for the tests
tasks/                   what jobs train
workers/                 the scripts that workers run
checks/                  what a store must do, call by call
reference/               what the papers' formulas give, in NumPy
codec_checks.py          what tests of codecs share
"""
