"""A job of its own: its processes share a key, and whoever has not got it is kept out.

    job_key      the key, from the environment, and what is derived of it
    encryption   has this process seal what it sends (csrc/security/)
    curve_hello  the first words of a connection, which only those who have the key say and answer
    admission    whether the job's scheduler has the same key, before ps-lite starts

May import config, descriptors, errors, notes and the core.
"""
