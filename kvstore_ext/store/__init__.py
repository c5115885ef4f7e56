"""The store that a script sees: what it may call, and where each call goes.

What this room promises: everything is checked before anything is sent, and no method is named here.
Pushes and pulls return at once; what waits for other processes says so. One thread calls a store at
a time, the script's; what others need is in the core, or says so. In reading order:

    p3_worker.py       the KVStore: takes keys and arrays, and hands them to the router
    store_keys.py      the store's keys, and how far each has come
    key_router.py      finds each one's policy, and calls it
    summed_key.py      policies of dense keys: updated on the servers, or on the workers
    pushes.py          what accompanies a push
    unrecorded.py      calls within mx.autograd.record()
    kept_arrays.py     where the script has its parameters
    sparse_key.py      the policy of keys that travel through MXNet's own store
    snapshot_store.py  how a script has its run written, and goes on from there
    store_run.py       what of the run is the store's
    other_run.py       the run of a further store, of the same moment
    verified_store.py  whether all workers still have the same parameters
    joining_store.py   a worker that has run out of batches: join, joined
    catching_up.py     what it takes over of the rounds that it has missed
    method_store.py    what a script sees of the store's method
    lane_store.py      how a store opens and closes
    broadcasts.py      one worker's arrays for all others
    whole_files.py     files that are there whole, or as they were before
    statistics.py      what was sent, and where the time went
    shutdown.py        how a process leaves its job
    exit_status.py     whether its script has failed
    forks.py           what it does when it forks, and its child

It imports errors, notes, unwritten, config, copies, launch_reports, trace, keys, protocol,
snapshots, compression, optimizer, lane and _core.
"""
