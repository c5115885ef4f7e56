"""Where kvstore_ext meets MXNet's own code: before and after its import, names, and scripts.

What this room promises: all that is changed of MXNet's Python is changed here. What the core
rewrites of its library is in csrc/security/. In reading order:

    before_import.py        engine settings, and what newer Pythons lack
    plain_distutils.py      compares versions for MXNet, without all of setuptools
    spared_imports.py       packages that MXNet imports, and that wait until they are asked for
    operators.py            MXNet's operators, whose functions are made when they are called
    after_import.py         what Trainer and Module have to know of stores that are not MXNet's
    registry.py             the names by which mx.kv.create makes stores
    loss_scaling.py         rounds that were skipped, for MXNet's automatic mixed precision
    networks.py             which layer is the last of a network that they train
    trained_parameters.py   what they have of a run, for its snapshots and for store.join
    buckets.py              the same of a BucketingModule, whose Modules share it
    reading.py              when a script reads them
    saved_states.py         the files of states that they write and load
    traced_networks.py      when the layers of a network run, for a trace: of a hybridized one,
    traced_executors.py     of Module's,
    traced_blocks.py        and of others, for which
    traced_graphs.py        names the layers of those that are compiled
    store_names.py          refuses names of no store, and says which one was meant
    listing.py              what kvstore-ext --list prints
    runner.py               kvstore-ext: scripts as they are
    joining.py              where such a script's batches end, for --join
    automatic_snapshots.py  snapshots of such scripts
    as_main.py              runs a script as if the interpreter had been started on it

before_import.py and the three behind it, and as_main.py, import nothing else of kvstore_ext; the
others may import everything.
"""
