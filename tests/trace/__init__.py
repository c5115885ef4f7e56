"""Each part alone does what it says: codecs, keys, queues, optimizers and whole rounds, no job."""
