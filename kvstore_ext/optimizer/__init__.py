"""Optimizers: where they run, what they remember, and what servers hear of a changed one.

What this room promises: parameters come out as from one process that updates whole parameters, on
the servers slice by slice or on the workers. In reading order:

    updates_slices.py   whether updating slices comes to the same as updating whole parameters
    kernel_updates.py   by loops of the core where it has them
    slice_optimizer.py  updates parameters on a server, slice by slice
    settings.py         what servers hear of an optimizer that a script changes
    commands.py         how a server gets its optimizers
    optimizer_format.py an optimizer on its way there, as data
    native_updater.py   updates sparse keys, which MXNet's own server has
    state_answers.py    a server's answers about states
    server_states.py    saving and loading what optimizers on the servers remember
    worker_states.py    the same, where they run on the workers
    server_values.py    putting back the values that optimizers on the servers have made
    replica.py          parameters that every worker updates alike, and may take over

It imports copies, errors, config, keys, protocol and _core, and nothing else of kvstore_ext.
"""
