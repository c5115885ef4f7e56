"""Files of optimizer states that Trainer and Module write and load: what errors leave of them."""
from __future__ import annotations

from typing import Any, Callable

from ..store.whole_files import whole_file


def saving_whole(save: Callable[..., None], store_class: Any) -> Callable[..., None]:
    """Where Trainer or Module updates by itself MXNet empties the file before it asks for the
    states, which may raise. Where the store updates, that sees to it."""

    def save_states(owner: Any, fname: Any) -> None:
        if not getattr(owner, "_kv_initialized", True):
            owner._init_kvstore()  # as Trainer does next: whose the store is shows only then
        store: Any = owner._kvstore
        if isinstance(store, store_class) and not owner._update_on_kvstore:
            with whole_file(fname, store.rank) as partial:
                save(owner, partial)
        else:
            save(owner, fname)

    return save_states


def loading_states_last(init: Callable[..., None]) -> Callable[..., None]:
    """Module.init_optimizer, which loads the states of a checkpoint: once all else is done, so that
    the updater that a store gives a Module has them. Where it fails, they are still to be loaded by
    the next call, as with MXNet."""

    def init_optimizer(module: Any, *arguments: Any, **named: Any) -> None:
        file, module._preload_opt_states = module._preload_opt_states, None
        try:
            init(module, *arguments, **named)
            if file is not None:
                module.load_optimizer_states(file)
        except BaseException:
            module._preload_opt_states = file
            raise

    return init_optimizer
