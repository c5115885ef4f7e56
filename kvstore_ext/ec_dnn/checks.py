"""What a network and its data must be, before anything is exchanged."""
from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from ..errors import ArrayMismatch, KVStoreError


def context_of(network: Any) -> mx.Context:
    """The device of a network's parameters.

    Raises
    ------
    KVStoreError
        For no HybridBlock, one that is not initialised, or one on several devices.
    """
    if not isinstance(network, gluon.HybridBlock):
        raise KVStoreError(
            f"ec_dnn: the network is a {type(network).__name__}; it must be a HybridBlock"
        )
    contexts = set()
    for parameter in network.collect_params().values():
        if parameter._data is None and parameter._deferred_init == ():
            raise KVStoreError(
                f"ec_dnn: parameter {parameter.name} is not initialised; call "
                "network.initialize() first"
            )
        contexts.update(parameter.list_ctx())
    if len(contexts) != 1:
        found = ", ".join(sorted(map(str, contexts))) or "no parameters"
        raise KVStoreError(
            f"ec_dnn: the network is on {found}; it must be on one device, as one device is one "
            "worker"
        )
    return next(iter(contexts))


def check_scores(scores: Any, labels: np.ndarray) -> int:
    """The number of classes that a network's output for a batch shows.

    Raises
    ------
    ArrayMismatch
        For an output that is not class scores, or labels that are not its classes.
    """
    if not isinstance(scores, mx.nd.NDArray):
        raise ArrayMismatch(
            f"ec_dnn: the network's output is a {type(scores).__name__}; it must be one array of "
            "class scores"
        )
    batch = len(labels)
    if scores.ndim != 2 or scores.shape[0] != batch or scores.shape[1] < 2:
        raise ArrayMismatch(
            f"ec_dnn: the network's output for {batch} examples has shape {scores.shape}; it must "
            f"be class scores of shape ({batch}, classes), with 2 classes or more"
        )
    values = scores.astype(np.float64).asnumpy()
    if not np.isfinite(values).all():
        raise ArrayMismatch("ec_dnn: the network's output has NaN or infinity")
    if (values >= 0).all() and np.allclose(values.sum(axis=1), 1, atol=1e-5):
        raise ArrayMismatch(
            "ec_dnn: the network's outputs are probabilities, as of a softmax; they must be the "
            "scores before it, which is applied here"
        )
    check_labels(labels, values.shape[1])
    return int(values.shape[1])


def check_labels(labels: np.ndarray, classes: int) -> None:
    """Raises ArrayMismatch for labels that are not 0 to classes - 1."""
    if labels.ndim != 1 or labels.min() < 0 or labels.max() >= classes:
        raise ArrayMismatch(
            f"ec_dnn: labels of shape {labels.shape} are {labels.min()} to {labels.max()}; they "
            f"must be one an example, 0 to {classes - 1}, as the network has {classes} outputs"
        )
