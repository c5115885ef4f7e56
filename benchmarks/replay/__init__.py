"""How fast a store is, with the network as the bottleneck: a network's training without computing.

    python -m benchmarks.replay run resnet50 --gigabits 1 4 --arms p3 dist_sync --results FILE
    python -m benchmarks.replay profile my_networks:make --shape 32,3,224,224 --output mine.json
    python -m benchmarks.replay run mine.json --gigabits 1 --arms p3 --results FILE

Each worker replays a trace: the layers of a network as timed waits on MXNet's engine, with the real
dependencies, while as many random numbers as it has gradients go through a real store, over the
links of a cluster of network namespaces. So communication hides exactly where it could hide behind
a GPU. Times and links are slowed down alike, by a dilation, so that two processors carry the whole
cluster; what the result depends on is their ratio.

trace.py         a network's layers, parameters and times: those of kvstore_ext/predict/network.py
costs.py         times of operations on a device, from a network's graph
published.py     makes the papers' networks
profile.py       makes the trace of a network of one's own
worker.py        replays a trace, by the waits of waits.py, the sums of exchanges.py
models_worker.py the same with models that are exchanged now and then
traffic.py       what a host sends and receives meanwhile
segments.py      and what its TCP has sent again
meters.py        the same and how busy processors are, as both workers read it
arms.py          what is compared, and how its users start it
roles.py         servers, schedulers and Horovod's rendezvous
forking.py       processes on hosts, without an import of mxnet for each
processes.py     all of a job, from the first to the last; benchmarks/training/ uses them too
job.py           one run of an arm
bound.py         the least time of any scheme that sends every gradient
measurement.py   many runs in turn, into a file that a rerun goes on from
summary.py       medians and spreads of such a file
endings.py       how commands that measure end

`benchmarks/cluster/` does not know this room, and kvstore_ext knows neither.
"""
