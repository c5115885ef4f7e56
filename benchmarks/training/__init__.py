"""Real training on real data, on a cluster of slow links: what a score costs in time.

Every arm trains the same network from the same weights on the same batches, with the same
optimizer and learning rates; what differs is how gradients travel. Computing is real, and so are
times: nothing is scaled, as it is in the replay. Workers stop their clocks and test now and then,
each on its share of the test examples.

recipe.py       what is trained and how, and on what cluster
tasks.py        the data, prepared for all workers, and scores
examples.py     makes the modules of examples/ known
arms.py         what is compared: arms of the replay, with what training needs, and EC-DNN
job.py          one training, and what it came to
runs.py         many of them, for benchmarks/replay/measurement.py
worker.py       trains with gluon.Trainer, or Horovod's
models.py       trains by EC-DNN, whose workers exchange models
clock.py        seconds of training, and scores by them
trainers.py     makes a worker's trainer
images.py       classifies images
sentences.py    translates phrases of the CLDR
summary.py      the curves of several seeds

This room uses `benchmarks/replay/`, which does not know it.
"""
