"""The pictures and tables of the documents, each made by one command.

    python -m benchmarks.figures readme        # or: make figure-readme

measures what `docs/figures/NAME.jsonl` does not have yet, and writes `docs/figures/NAME.svg` and
the table beside it, NAME.md. Without the .jsonl everything is measured anew.

style.py   how all pictures look
readme.py  throughput of stores and peers at three bandwidths

This room uses `benchmarks/replay/`, which does not know it.
"""
