"""Are predictions true? Those of kvstore-ext predict beside what the replay has measured.

    python -m benchmarks.prediction

reads what `benchmarks/figures/` has measured (docs/figures/*.jsonl), predicts each setting, and
writes docs/prediction.md. It measures nothing.

fitted.py    what was used to fit constants, and does not count
settings.py  what was measured, by settings
arms.py      how an arm of the replay is predicted
compared.py  what was measured of a setting, and what is predicted
leads.py     whether the store that was ahead is predicted ahead
document.py  the table and what stands around it
__main__.py  the command

    python -m benchmarks.prediction.further

measures settings that no figure has, into docs/figures/prediction.jsonl (further.py): every store.

    python -m benchmarks.prediction.bursts

measures what is not of the replay: how far the shares of a link that TCP's connections get lie
apart.

bursts.py      the command, and what the simulation says of the same
burst_host.py  a host of it
"""
