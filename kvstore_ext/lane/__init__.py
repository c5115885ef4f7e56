"""How a store gets its worker: in a cluster beside MXNet's own store, or with its server here.

What this room promises: once it is open, a store need not know whether there is a cluster, and
every wait for other processes ends, with an error that names who is missing. In reading order:

    lane.py           what a store may ask of its lane
    local_lane.py     worker and server in one process
    cluster_lane.py   a worker of a launched job
    opening_errors.py what it says where the job does not come up
    script_reads.py   whether the script has come to what it may have to wait for
    end_of_script.py  how a script ends that was told to, with last snapshots
    told_alone.py     of a process without a cluster
    told_to_end.py    what a worker does once a process was told to end
    bounded_calls.py  what MXNet may do for ever, given up after a time
    threads_left.py   how many threads may encode
    tracer.py         a worker's part in a trace

It imports errors, notes, unwritten, config, descriptors, launch_reports, status_reports,
stock_store, security, trace, keys, protocol, optimizer, server and _core.
"""
