"""BucketingModule: one set of parameters, which all its Modules share."""
from __future__ import annotations

from typing import Any, Callable


def seeing_changes(get: Callable[[Any], Any], store_class: Any) -> Callable[[Any], Any]:
    """BucketingModule.get_params, which also gives what a store has changed: values that were
    restored, or taken over from another worker.

    That is noted in the Module that has the optimizer (trained_parameters.py). MXNet overwrites its
    note by the BucketingModule's, which knows of updates alone.
    """

    def get_params(module: Any) -> Any:
        buckets = module._buckets.values()
        ours = [bucket for bucket in buckets if isinstance(bucket._kvstore, store_class)]
        if any(bucket._params_dirty for bucket in ours):
            module._params_dirty = True
        found = get(module)
        for bucket in ours:
            bucket._params_dirty = False
        return found

    return get_params
