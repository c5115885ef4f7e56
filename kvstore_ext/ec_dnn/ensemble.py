"""The global model: an ensemble as a block of its own."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock, nn

from ..errors import ArrayMismatch


class Ensemble(HybridBlock):
    """The weighted sum of its members' softmax (equations 5 and 6), of shape (batch, C).

    It can be hybridized, saved and exported like any other. To load saved parameters, make one of
    as many new networks: Ensemble([make_network() for _ in range(4)]).load_parameters(file).

    Parameters
    ----------
    members
        Networks that map the same inputs to scores (batch, C).
    coefficients
        (K,), float32; None for 1/K each. They are saved with the parameters, and lie where those of
        the members do; where these have no place yet, they get theirs together.
    """

    def __init__(
        self, members: Sequence[HybridBlock], coefficients: Optional[np.ndarray] = None
    ) -> None:
        super().__init__()
        values = np.full(len(members), 1 / len(members)) if coefficients is None else coefficients
        with self.name_scope():
            self.members = nn.HybridSequential()
            self.members.add(*members)
            self.coefficients = self.params.get(
                "coefficients",
                shape=(len(members),),
                init=mx.init.Constant(mx.nd.array(values)),
                grad_req="null",
            )
        contexts = _contexts_of(members)
        if contexts:
            self.coefficients.initialize(ctx=contexts)

    def hybrid_forward(self, F: Any, x: Any, coefficients: Any) -> Any:
        outputs = [F.softmax(F.cast(member(x), dtype="float32")) for member in self.members]
        stacked = F.stack(*outputs, axis=0)
        return F.broadcast_mul(stacked, coefficients.reshape((-1, 1, 1))).sum(axis=0)


def _contexts_of(members: Sequence[HybridBlock]) -> List[mx.Context]:
    """The devices of the first member's parameters; none where these are not initialised."""
    for parameter in members[0].collect_params().values() if members else ():
        if parameter._data is not None or parameter._deferred_init:
            return list(parameter.list_ctx())
    return []


def copy_of(
    make_network: Callable[[], HybridBlock], values: Sequence[mx.nd.NDArray]
) -> HybridBlock:
    """A new network with these parameters, in the order of collect_params.

    Raises
    ------
    ArrayMismatch
        Where make_network makes another architecture.
    """
    network = make_network()
    parameters = list(network.collect_params().values())
    if len(parameters) != len(values):
        raise ArrayMismatch(
            f"make_network makes {len(parameters)} parameters; the trained network has "
            f"{len(values)}"
        )
    for parameter, value in zip(parameters, values):
        try:
            parameter.shape = value.shape
        except AssertionError:
            raise ArrayMismatch(
                f"make_network makes parameter {parameter.name} of shape {parameter.shape}; the "
                f"trained network has {value.shape}"
            ) from None
        parameter.initialize(mx.init.Zero(), value.context, force_reinit=True)
        parameter.set_data(value)
    return network
