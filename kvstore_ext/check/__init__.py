"""Tells whether hosts and the links between them are fit for a job, and what to do where not.

`python -m kvstore_ext --check`, `kvstore-ext --check` and, by its path, `check/__main__.py` take
the same arguments and do the same. In reading order:

    asked        python -m kvstore_ext --check, before the package's own imports
    __main__     how the check and its probes start
    main         from the command line to the exit status
    finding      what a check says: what it looked at, what it found, and the remedy
    host         all checks of one host, in the order in which they are printed
    imports, attempt
                 what can be imported, found out in a process of its own
    software     Python, NumPy, MXNet, the core and its kernels, devices
    machine      system, memory, clock
    network      the address and the ports that a job would use
    settings     what the environment sets: the job, options, MXNet's engine

With `-H`, a probe on every host, started by the launcher's own way:

    starting     a supervisor on every host that can be reached, and a probe under it
    probe        on the host: does what it is asked for, until its input ends
    probes       the other end of that conversation
    pair         the round trip and the bandwidth from one host to another
    hosts        all hosts, then what must agree between them, then one link after another
    agreement    versions, addresses and clocks
    remedies     what to do where a host or a port cannot be reached
    report       all of it as text or JSON

The check works where neither kvstore_ext nor mxnet can be imported. So its files import the
standard library, each other, launcher/ and mxnet_hooks/before_import.py, which do so too.
"""
