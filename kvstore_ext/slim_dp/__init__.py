"""Slim-DP: workers train models of their own, and exchange the part that matters.

Sun et al., "Slim-DP: A Light Communication Data Parallelism for DNN"
(AAAI 2018). What this room promises: no other one knows of it but methods.py, which lists it. In
reading order:

    options.py          what users can tell it
    method.py           what it decides in a store
    trained_locally.py  what becomes of a key that it trains
    local_training.py   a step: the update on the worker, and every few steps an exchange
    core_selection.py   choosing the core over the whole model
    states.py           what it adds to saved states

In the core it is csrc/slim_dp. It imports errors, config, keys, protocol, compression and _core.
"""
