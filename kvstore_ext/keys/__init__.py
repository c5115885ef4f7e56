"""Keys at a worker: what scripts call them, their arrays, and what becomes of each.

What this room promises: a key's shape and type are checked here, before anything is sent, and no
other room touches the buffers between devices and the lane. In reading order:

    names.py        what a script calls its keys, and the numbers by which they travel
    key_parts.py    the parts in which a key lies on the servers
    key_policy.py   what becomes of a key: the interface that the router calls
    key_arrays.py   gives MXNet's engine an operation on a dense key's arrays
    sparse_rows.py  which of MXNet's servers has which rows of a sparse key

It imports errors and _core, and nothing else of kvstore_ext.
"""
