"""What the project promises, a directory for each kind of promise.

core/        the C++ core's classes, in C++
parts/       one part at a time, without a job
training/    jobs train as one process would, and as the papers say
failures/    what goes wrong is said, and ends the job
launch/      how jobs are started
models/      the networks of gluon_models/
examples/    the scripts of examples/ and what they read
benchmarks/  what benchmarks/ simulate and tabulate
support/     what tests share: jobs, references, and the scripts that workers run

Packages are imported from the repository's root. Modules that lie beside the scripts of examples/
and benchmarks/ are imported as those import them; pyproject.toml has the directories.
"""
