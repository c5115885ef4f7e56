"""Handwritten digits of which few are to train on, some of them with a wrong label."""
from __future__ import annotations

import numpy as np
from datasets import digit_images
from ensembles.parts import Parts

TRAIN, VALIDATION = 600, 400  # the other 797 test
NOISE = 0.3  # the share of the training part that has a label at random of the other nine


def noisy_digits(seed: int) -> Parts:
    """A split that follows from the seed; inputs are of shape (n, 64). What networks are measured
    on has its own labels."""
    images, labels, others, other_labels = digit_images(seed, TRAIN)
    random = np.random.RandomState(seed)
    wrong = random.permutation(TRAIN)[: round(NOISE * TRAIN)]
    given = labels.copy()
    given[wrong] = (given[wrong] + random.randint(1, 10, len(wrong))) % 10
    flat, held_out = ((part.reshape(len(part), -1) / 16).astype(np.float32)
                      for part in (images, others))
    return Parts(
        (flat, given), (held_out[:VALIDATION], other_labels[:VALIDATION]),
        (held_out[VALIDATION:], other_labels[VALIDATION:]),
    ).centred()
