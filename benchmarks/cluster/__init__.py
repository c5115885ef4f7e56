"""A cluster on one machine: hosts as network namespaces, on links as slow as wanted.

    from benchmarks.cluster import Cluster, Link

    with Cluster(hosts=4, link=Link(send=500, receive=500)) as cluster:   # Mbit/s
        process = cluster.start(cluster.hosts[0], ["python", "train.py"], environment)

Every host has an address of its own on `eth0` and reaches the others through a switch, which is a
namespace as well, with an unlimited link; the scheduler of a job runs there. TCP between them finds
out by CUBIC how fast it may send, as Linux does by default, whatever the machine has. Nothing is
changed outside of these namespaces, so several clusters stand side by side. Leaving the context
ends what still runs in them and removes them. What a killed process left is removed by whoever
makes the next cluster. Linux alone has this, and root alone may use it.

cluster.py     the context manager
namespaces.py  making, shaping and removing namespaces, by iproute2's commands
claims.py      which cluster belongs to whom, and what belongs to nobody any more

This room imports the standard library alone.
"""
from benchmarks.cluster.cluster import Cluster, Host
from benchmarks.cluster.namespaces import CONGESTION_CONTROL, ClusterError, Link

__all__ = ["CONGESTION_CONTROL", "Cluster", "ClusterError", "Host", "Link"]
