"""EC-DNN and the methods it is compared with: they exchange models every tau steps, not gradients.

Sun and Liu, "EC-DNN: A new method for parallel training of deep neural networks", Neurocomputing
2018. In a Gluon script:

    trainer = ec_dnn.Trainer(
        network, (images, labels), "sgd", {"learning_rate": 0.1, "momentum": 0.9},
        store=mx.kv.create("p3"), method=ec_dnn.Method("ec_dnn_s", tau=100), batch_size=16)
    for aggregation in trainer.rounds(20):
        print(aggregation)
    local = trainer.local_model(make_network)     # one network
    ensemble = trainer.global_model(make_network) # a HybridBlock

To follow one round, read in this order:

    method.py       which method, with tau, p, mu, alpha and beta
    trainer.py      algorithm 1: local steps, aggregation, compression; the final models
    checks.py       what a network and its data must be
    local_data.py   a worker's examples, and which come when
    learner.py      a worker's network between exchanges: training steps, and outputs
    losses.py       equations 9 and 10
    models.py       every worker's model in turn through the store (store/broadcasts.py); averages
    relabelling.py  equations 5 to 8 and the pseudo-labels, on NumPy arrays
    evaluation.py   errors of local and global models
    report.py       what a round came to
    trainer_run.py  all this between two rounds, for snapshots of the store
    final.py        the best model, and one regression for all
    ensemble.py     the ensemble as a block of its own

What this room promises: it needs of a store only what scripts may call. It imports copies, errors,
snapshots and whole_numbers.
"""
from .ensemble import Ensemble
from .losses import AcceleratedCompressionLoss, DiverseTrainingLoss
from .method import METHODS, Method
from .report import Aggregation
from .trainer import Trainer

__all__ = [
    "METHODS",
    "AcceleratedCompressionLoss",
    "Aggregation",
    "DiverseTrainingLoss",
    "Ensemble",
    "Method",
    "Trainer",
]
