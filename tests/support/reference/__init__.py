"""The papers' formulas in NumPy, and the formats of messages: what the core is compared with.

formulas.py   random numbers, scalers, levels, selections
packing.py    digits in bytes
codecs.py     each method's messages
rounds.py     all workers and a server, round after round
slim_dp.py    Slim-DP's cores, explorers and rounds
ec_dnn.py     EC-DNN's coefficients and training
"""
