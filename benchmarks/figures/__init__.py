"""The pictures and tables of the documents, each made by one command.

    python -m benchmarks.figures readme        # or: make figure-readme

measures what `docs/figures/NAME.jsonl` does not have yet, and writes `docs/figures/NAME.svg` and
the table beside it, NAME.md. Without the .jsonl everything is measured anew. A figure is a module
with `runs`, all that it takes, and `draw`, which needs their results alone.

readme.py        throughput of stores and peers at three bandwidths
p3_bandwidth.py  throughput against bandwidth, and the gain over the baseline
p3_traffic.py    what a host sends and receives every 10 ms
p3_hosts.py      throughput against the number of hosts
p3_slices.py     throughput against the size of a slice
slim_communication.py  communication time of Plump-, Quant- and Slim-DP
slim_time.py     their accuracy and speed in real trainings
ec_dnn_time.py   errors and speeds of EC-DNN, E-DNN and MA-DNN in real trainings
compression.py   every compression against bandwidth, and how much of slim_dp's time hides
p3_accuracy.py   accuracy of five settings with p3 and with dgc
time_to_accuracy.py    test scores against the seconds of real trainings

extent.py        how often and how long runs are, and what of them --quick has
curves.py        throughputs as lines with bands
score_curves.py  scores of trainings as lines with bands
gains.py         gains over the baseline, what the bound allows, where a peer is ahead
wire_time.py     where the time of iterations goes: on the wire, waiting, unused
captions.py      what stands below tables
style.py         how all pictures look
document.py      where docs/figures.md shows them

This room uses `benchmarks/replay/` and `benchmarks/training/`, which do not know it.
"""
