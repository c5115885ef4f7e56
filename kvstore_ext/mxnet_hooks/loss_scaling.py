"""MXNet's automatic mixed precision (AMP) with stores that skip rounds which are not finite."""
from __future__ import annotations

from typing import Any, Callable

import mxnet as mx

from ..compression.store_method import StoreMethod
from ..errors import of_job
from ..notes import warn_script


def heeding_skipped_rounds(update: Callable[..., None], store_class: Any) -> Callable[..., None]:
    """Trainer._update, to which a round that the store has skipped is an overflow.

    AMP lowers its loss scale where it finds one in the gradients, which Trainer has replaced by
    their sums by then: of a skipped round that is zeros. Where servers update, it would see this
    worker's own alone, and each worker would scale otherwise.

    It warns of what would have workers drift apart.
    """

    def update_or_skip(trainer: Any, ignore_stale_grad: bool = False) -> None:
        scaler, store = getattr(trainer, "_amp_loss_scaler", None), trainer._kvstore
        if not isinstance(store, store_class):
            return update(trainer, ignore_stale_grad)
        if ignore_stale_grad and not trainer._update_on_kvstore and store.num_workers > 1:
            warn_script(
                "with ignore_stale_grad each worker updates only what it has computed gradients "
                "of itself, so that parameters drift apart: have servers update, with the store "
                "'p3' and what compresses as compression_params, or leave ignore_stale_grad out"
            )
        if scaler is None:
            return update(trainer, ignore_stale_grad)
        if trainer._update_on_kvstore and store.method.trains_on_workers:
            warn_script(
                f"AMP has gradients overflow to find its loss scale, which {store.type} takes for "
                "gradients: train with float16 without AMP, or with another store"
            )
        elif trainer._update_on_kvstore and not store.method.skips:
            # MXNet's own stores end such a script once the scale changes.
            warn_script(
                "AMP has gradients overflow to find its loss scale, of which servers make NaN: "
                "give the store the option non_finite 'skip', or Trainer update_on_kvstore=False"
            )
        if _has_skipped(trainer, store.method):
            scaler.has_overflow([_Overflow()])
        else:
            update(trainer, ignore_stale_grad)
        return None

    return update_or_skip


class _Overflow:
    """Stands in for a parameter that a LossScaler looks at, and finds too large a gradient of."""

    def __init__(self) -> None:
        self._grad = [mx.nd.array([float("inf")])]


def _has_skipped(trainer: Any, method: StoreMethod) -> bool:
    """Whether the store has skipped a key of the step; waits for all of them."""
    if not method.skips:
        return False
    pushed = {
        key: parameter
        for key, parameter in enumerate(trainer._params)
        if parameter.grad_req != "null" and parameter._stype == "default"
    }
    on_servers = trainer._update_on_kvstore
    with of_job(trainer._kvstore._worker.failure):
        for parameter in pushed.values():
            results = parameter.list_data() if on_servers else parameter.list_grad()
            results[0].wait_to_read()
    return method.skipped(pushed)
