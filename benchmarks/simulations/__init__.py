"""All workers and servers of a job in one process, with the bits of a cluster's run.

Sums are in the order of ranks, as with the store's option `deterministic`. tests/benchmarks and
tests/training/test_ec_dnn.py compare these with jobs. stacked_networks.py and ensembles.py have
networks of their own instead, and the bits of none: they are quick. To read in this order:

network.py    one network that computes the gradients of all workers
gradients.py  gradients that travel as they are, or compressed
slim_dp.py    Slim-DP: every worker's model, and the cores that servers choose
beyond.py     what was tried beyond the papers, and is no part of any job
ec_dnn.py     the store that kvstore_ext.ec_dnn asks, with a thread for each worker
stacked_networks.py  networks of several workers as arrays
ensembles.py         the rounds of kvstore_ext.ec_dnn with these

and of TernGrad's figure 5, which trains nothing:

terngrad_model.py    the equations of its performance model
terngrad_events.py   the same question asked of kvstore_ext.predict
"""
