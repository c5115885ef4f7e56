"""A server or scheduler process: python -m kvstore_ext.server, with DMLC_ROLE set by a launcher.

What this room promises: a server does what the rooms below have registered, names no method, and
ends with the job, whatever happens to the others. In reading order:

    parts.py      what every server has, in a process of its own or in the worker's
    process.py    the process around it
    ending.py     how that ends, whoever else is gone
    scheduler.py  the scheduler's process

It imports errors, config, stock_store, keys, protocol, compression, optimizer and _core.
"""
from .process import P3Server, main

__all__ = ["P3Server", "main"]
