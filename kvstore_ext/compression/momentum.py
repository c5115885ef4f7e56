"""Takes an optimizer's momentum over, for methods that apply it themselves."""
from __future__ import annotations

import mxnet as mx

from ..errors import KVStoreError


def take_momentum(optimizer: mx.optimizer.Optimizer, method: str) -> float:
    """The momentum of SGD, which from now on is the method's; the optimizer's own becomes 0.

    Weight decay stays with the optimizer, where it needs no communication. It is a part of the
    gradient to which momentum is applied (Lin et al., ICLR 2018, as in SGD), and m of momentum adds
    1 + m + m^2 + ... of it up over the steps that follow: the optimizer's wd becomes wd / (1 - m),
    which comes to the same as long as parameters change little in 1 / (1 - m) steps.

    Parameters
    ----------
    method
        Its name, for errors.

    Raises
    ------
    KVStoreError
        For a momentum that is not plain SGD's, or not below 1.
    """
    momentum = getattr(optimizer, "momentum", 0.0)
    if not momentum:
        return 0.0
    if type(optimizer) is not mx.optimizer.SGD:
        raise KVStoreError(
            f"{method} applies the momentum of SGD itself; that of {type(optimizer).__name__} is "
            "another: use SGD, or an optimizer without momentum"
        )
    if not 0 < momentum < 1:
        raise KVStoreError(f"{method}: the momentum is {momentum}; it must be 0 or more, below 1")
    optimizer.momentum = 0.0
    optimizer.wd /= 1 - momentum
    return float(momentum)
