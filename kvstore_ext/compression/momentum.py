"""Takes an optimizer's momentum over, for methods that apply it themselves."""
from __future__ import annotations

import mxnet as mx

from ..errors import KVStoreError

# An optimizer's attribute: what was taken of it. It may be given to another store, or be saved with
# its states and loaded again, where its wd is what momentum has made of it.
_TAKEN = "momentum_applied_by_store"


def check_momentum(optimizer: mx.optimizer.Optimizer, method: str) -> None:
    """Checks that a method which applies momentum itself can take this optimizer's.

    Parameters
    ----------
    method
        Its name, for errors.

    Raises
    ------
    KVStoreError
        For a momentum that is not plain SGD's, or not below 1; for an optimizer that clips each
        gradient, as what arrives is the sum of many.
    """
    clip = getattr(optimizer, "clip_gradient", None) or 0
    if clip > 0:
        raise KVStoreError(
            f"{method} adds gradients up before it sends them, and the optimizer's clip_gradient "
            f"of {clip:g} would clip these sums: take the option clip_norm of {method}, which "
            "limits each gradient"
        )
    momentum = getattr(optimizer, "momentum", 0.0)
    if not momentum:
        return
    if type(optimizer) is not mx.optimizer.SGD:
        raise KVStoreError(
            f"{method} applies the momentum of SGD itself; that of {type(optimizer).__name__} is "
            "another: use SGD, or an optimizer without momentum"
        )
    if not 0 < momentum < 1:
        raise KVStoreError(f"{method}: the momentum is {momentum}; it must be 0 or more, below 1")


def take_momentum(optimizer: mx.optimizer.Optimizer, method: str) -> float:
    """The momentum of SGD, which from now on is the method's; the optimizer's own becomes 0.

    Weight decay stays with the optimizer, where it needs no communication. It is a part of the
    gradient to which momentum is applied (Lin et al., ICLR 2018, as in SGD), and m of momentum adds
    1 + m + m^2 + ... of it up over the steps that follow: the optimizer's wd becomes wd / (1 - m),
    which comes to the same as long as parameters change little in 1 / (1 - m) steps. Of an
    optimizer that has given its momentum already it is that one.

    Parameters and errors are those of `check_momentum`.
    """
    check_momentum(optimizer, method)
    momentum = getattr(optimizer, "momentum", 0.0)
    if momentum:
        optimizer.momentum = 0.0
        optimizer.wd /= 1 - momentum
    taken = float(momentum or getattr(optimizer, _TAKEN, 0.0))
    setattr(optimizer, _TAKEN, taken)  # 0 too, which a snapshot is to say
    return taken
