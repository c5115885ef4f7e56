"""How fast each store will be, before it runs: the command kvstore-ext predict.

In reading order:

    network, networks/   a network's layers, as the benchmarks replay them
    devices              another device's times
    cluster              hosts, links, stragglers
    events               what happens next
    beside               what is done on a host for processes that are simulated elsewhere
    wires, shares        links between hosts, and how connections share them
    queues, windows      how the lane hands messages to its connections
    streams              how MXNet's own stores do, and TCP sends them
    stock_p3, heaps      in which order stock P3 does, and where it stands still
    processors, costs    what processors do for a store
    topology             hosts and connections: each, or one for all that are alike
    worker               forward and backward passes
    placement, codecs    which server has what, and in how many bytes
    parameter_servers    the lane, and MXNet's own stores
    ring                 an all-reduce
    models_exchanged     EC-DNN
    speeds, measuring    how fast a host's processors are
    stores               all of them by name
    simulation           one prediction
    limits, sweep        what limits it; many of them
    progress             how much is left
    table, picture       for reading
    job_trace, profiling the network of a job, or of a script
    main                 the command

It imports trace/ and report/, and works without MXNet.
"""
