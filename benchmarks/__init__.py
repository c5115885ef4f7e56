"""Programs that measure speed, memory and accuracy, and the tables that they have made.

codecs.py       how fast codecs are
small_keys.py   time of a round of many small keys
ec_dnn_cost.py  what relabelling costs
*_accuracy.py   accuracies, each beside its .md; they share accuracy.py and trainings.py
beyond.py       what was tried beyond the papers; overlapping.py is a part of it
cluster/        hosts on slow links: network namespaces of this machine
replay/         a network's training on them, by every store and its peers
training/       real trainings on them
figures/        the documents' pictures and tables of that
prediction/     whether kvstore-ext predict is right about what figures/ has measured
ensembles/      what ec_dnn_accuracy.py trains and tells
simulations/    all workers of a job in one process, for the accuracies
extra.py        what to install where a package is missing
datasets.py     a link: the data sets of examples/
"""
