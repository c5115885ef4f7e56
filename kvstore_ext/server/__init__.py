"""A server or scheduler process: python -m kvstore_ext.server, with DMLC_ROLE set by a launcher.

What this room promises: a server does what the rooms below have registered, names no method, and
ends with the job, whatever happens to the others. In reading order:

    parts.py      what every server has, in a process of its own or in the worker's
    process.py    the process around it
    entering.py   how that enters the job
    ending.py     how it ends, whoever else is gone
    scheduler.py  the scheduler's process
    tracing.py    a server's part in a trace

It imports errors, notes, config, descriptors, launch_reports, status_reports, stock_store,
security, trace, protocol, compression, optimizer and _core.
What the scheduler's imports does without most of MXNet (mxnet_hooks/before_import.py).
"""
