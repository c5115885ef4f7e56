"""Programs that measure speed, memory and accuracy, and the tables that they have made.

codecs.py       how fast codecs are
small_keys.py   time of a round of many small keys
unshaped.py     large ones, on one machine; where_time_goes.py says where, and memory.py how much
launched.py     the jobs of these
layer_cost.py   what the hooks of layers cost; trace_cost.py and secure_cost.py what their names say
startup.py      how long jobs take to start and to end
ec_dnn_cost.py  what relabelling costs
*_accuracy.py   accuracies, each beside its .md; they share accuracy.py, trainings.py, intervals.py
*_ablation.py   the same, of which a part of a method costs what; terngrad_tables.py is another
beyond.py       what was tried beyond the papers; overlapping.py is a part of it
cluster/        hosts on slow links: network namespaces of this machine
replay/         a network's training on them, by every store and its peers
training/       real trainings on them
figures/        the documents' pictures and tables of that
growth/         what every further host costs each process
prediction/     whether kvstore-ext predict is right about what figures/ has measured
ensembles/      what ec_dnn_accuracy.py trains and tells
simulations/    all workers of a job in one process, for the accuracies
result_lines.py files of results that a rerun goes on from
extra.py        what to install where a package is missing
datasets.py     a link: the data sets of examples/
"""
