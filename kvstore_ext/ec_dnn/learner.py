"""A worker's network between exchanges: training steps, and outputs."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from ..copies import copied, count_on, packed, resume, update_counts
from ..errors import ArrayMismatch, KVStoreError
from . import relabelling
from .checks import check_labels, check_scores, context_of
from .local_data import Examples, to_device

_OUTPUT_BATCH = 256


class Learner:
    """Trains a network on a worker's examples.

    The optimizer is one for all steps, local ones and those of compression: a learning-rate
    schedule counts both, and momentum goes on through aggregations. It stays with its worker and
    is not averaged.
    """

    def __init__(
        self,
        network: gluon.HybridBlock,
        data: Any,
        optimizer: Any,
        optimizer_params: Optional[Dict[str, Any]],
    ) -> None:
        self.network = network
        self.context = context_of(network)
        self._infer(network, data)
        self.examples = Examples(data, "data", self.context)
        inputs, labels = self.examples.batch(np.arange(min(len(self.examples), 8)))
        self.classes = check_scores(_first_scores(network, inputs), labels)
        self.plain_loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.plain_loss.hybridize()
        # As a list they keep their order, of which states have their numbers; by names, which MXNet
        # counts up in a process, they would be sorted.
        parameters = list(network.collect_params().values())
        self._trainer = gluon.Trainer(parameters, optimizer, optimizer_params, kvstore=None)

    def train(
        self,
        loss: gluon.HybridBlock,
        batches: np.ndarray,
        targets: Optional[Tuple[np.ndarray, np.ndarray]],
        on_step: Callable[[Optional[float]], None],
    ) -> float:
        """One step a batch; returns the mean loss. Raises KVStoreError where one is not finite.

        Parameters
        ----------
        batches
            (steps, batch_size): indices of examples.
        targets
            A table (n, C), and in it the places (steps, batch_size) of the loss's third input;
            None where it has two.
        """
        total, before, last = 0.0, None, None
        for step, indices in enumerate(batches):
            inputs, labels = self.examples.batch(indices)
            check_labels(labels, self.classes)
            known = [labels] if targets is None else [labels, targets[0][targets[1][step]]]
            with autograd.record():
                scores = self.network(inputs).astype("float32", copy=False)
                losses = loss(scores, *(to_device(array, self.context) for array in known))
            losses.backward()
            self._trainer.step(len(indices))
            # The step before is waited for, not this one, which goes on beside the next.
            if before is not None:
                last = _finite(before)
                total += last
            before = losses.mean()
            on_step(last)
        return (total + (0.0 if before is None else _finite(before))) / max(1, len(batches))

    @property
    def keeps_masters(self) -> bool:
        """Whether the optimizer goes by copies in float32 of parameters of float16."""
        dtypes = {np.dtype(each.dtype) for each in self.network.collect_params().values()}
        return bool(self._trainer.optimizer.multi_precision) and np.dtype(np.float16) in dtypes

    @property
    def optimizer_name(self) -> str:
        """The optimizer's class."""
        return type(self._trainer.optimizer).__name__

    def optimizer(self) -> Tuple[Dict[Any, Any], bytes]:
        """The optimizer's states, and itself."""
        updater, = self._trainer._updaters
        return copied(updater.states), packed(updater.optimizer)

    def resume_optimizer(self, saved: Tuple[Dict[Any, Any], bytes]) -> None:
        """Goes on from what `optimizer` returned."""
        updater, = self._trainer._updaters
        updater.states = dict(saved[0])
        updater.states_synced = dict.fromkeys(updater.states, False)
        resume(updater.optimizer, saved[1])
        # Another host may have another device for this worker.
        counts = update_counts(updater.optimizer)
        count_on(updater.optimizer, counts, [self.context.device_id])

    def outputs(self, examples: Examples, indices: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Logarithms of the softmax (n, C) without dropout, and labels (n,)."""
        scores, labels = [], []
        for begin in range(0, len(indices), _OUTPUT_BATCH):
            inputs, some = examples.batch(indices[begin : begin + _OUTPUT_BATCH])
            check_labels(some, self.classes)
            scores.append(self.network(inputs).astype(np.float32, copy=False).asnumpy())
            labels.append(some)
        if not scores:
            return np.zeros((0, self.classes), np.float32), np.zeros(0, np.int64)
        return relabelling.log_softmax(np.concatenate(scores)), np.concatenate(labels)

    def outputs_of_all(self) -> Tuple[np.ndarray, np.ndarray]:
        """The same for all examples of this worker."""
        return self.outputs(self.examples, np.arange(len(self.examples)))

    def _infer(self, network: gluon.HybridBlock, data: Any) -> None:
        """Gives parameters of deferred shapes theirs, as a first forward pass would."""
        if any(p._deferred_init for p in network.collect_params().values()):
            examples = Examples(data, "data", mx.cpu())
            network.infer_shape(examples.batch(np.arange(1))[0])
            for parameter in network.collect_params().values():
                parameter._finish_deferred_init()


def _first_scores(network: gluon.HybridBlock, inputs: mx.nd.NDArray) -> Any:
    """Raises ArrayMismatch where the network cannot compute these inputs."""
    try:
        scores = network(inputs)
        if isinstance(scores, mx.nd.NDArray):
            scores.wait_to_read()
    except mx.MXNetError as error:
        raise ArrayMismatch(
            f"ec_dnn: the network cannot compute inputs of shape {inputs.shape} and type "
            f"{np.dtype(inputs.dtype).name}. Of data given as arrays it is float32; those of a "
            f"gluon.data.Dataset are as they are. {error}"
        ) from None
    return scores


def _finite(loss: mx.nd.NDArray) -> float:
    value = float(loss.asscalar())
    if not math.isfinite(value):
        raise KVStoreError(
            f"ec_dnn: training diverged: the loss of a mini-batch is {value}; others would get "
            "this model, so nothing goes on. Try a smaller learning rate or alpha"
        )
    return value
