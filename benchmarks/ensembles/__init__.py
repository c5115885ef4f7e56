"""What ec_dnn_accuracy.py trains, and how it tells of it.

To read in this order:

tasks.py           what networks are trained on: parts.py, noisy_digits.py, language_names.py
training.py        one training, its workers simulated (simulations/ensembles.py)
plan.py            which trainings there are; how numbers and tau are chosen
tables.py          what they found
picture.py         the paper's figures
"""
