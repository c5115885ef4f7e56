"""What MXNet's own classes do not know about stores that are not its own."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List
from weakref import WeakSet

import mxnet as mx
from mxnet.kvstore import KVStoreBase

from ..errors import KVStoreError
from ..keys.names import Key
from ..launch_reports import report
from ..notes import warn_script
from ..optimizer.worker_states import CarryingUpdater
from ..security.admission import enter_stock_job
from ..trace.networks import networks
from .buckets import seeing_changes
from .loss_scaling import heeding_skipped_rounds
from .networks import (
    last_layer_of_module,
    last_layer_of_trainer,
    remembering_declaration,
    remembering_network,
)
from .reading import tell_of_reading
from .saved_states import loading_states_last, saving_whole
from .store_names import check_name, check_servers
from .traced_blocks import TracedBlocks
from .traced_executors import TracedExecutors
from .traced_networks import TracedNetworks
from .trained_parameters import ModuleParameters, TrainedParameters, TrainerParameters


def adopt(store_class: type) -> None:
    """Has Trainer and Module treat stores of this class as they were meant to be.

    Of a name without 'dist' and one device MXNet makes no store at all, inside a launched job too,
    and the workers train each by itself; so they do with a name that it does not know, of which it
    makes a local store. And Trainer refuses another batch size than the last one's with any
    distributed store that updates parameters, because MXNet's own servers would not hear of it;
    ours do (optimizer/settings.py). Nor does a store hear of an optimizer that the script runs
    itself, or of the network, of which compression has to know.

    MXNet's optimizer `test`, of its own suites, copies a weight into its state, which is dense even
    where the weight is row-sparse, so that the copy raises. Its servers lose what an optimizer
    raises and go on; ours end the job.
    """
    mx.optimizer.Test.create_state = _creating_state_for_copies(mx.optimizer.Test.create_state)
    mx.kv.create = _creating_known(mx.kv.create)
    for module in (mx.model, mx.gluon.trainer, mx.module.module):
        module._create_kvstore = _creating(module._create_kvstore, store_class)
    mx.model._train_multi_device = _refusing_methods(mx.model._train_multi_device, store_class)
    mx.gluon.trainer._create_sparse_kvstore = _creating_for_sparse_weights(
        mx.gluon.trainer._create_sparse_kvstore, store_class
    )
    mx.gluon.Trainer._check_and_rescale_grad = _rescaling(
        mx.gluon.Trainer._check_and_rescale_grad, store_class
    )
    mx.gluon.Trainer._allreduce_grads = _beginning_step(
        mx.gluon.Trainer._allreduce_grads, store_class
    )
    mx.gluon.Trainer._update = heeding_skipped_rounds(mx.gluon.Trainer._update, store_class)
    _let_traces_know_networks()
    tell_of_reading()
    mx.gluon.Trainer.save_states = saving_whole(mx.gluon.Trainer.save_states, store_class)
    mx.module.Module.save_optimizer_states = saving_whole(
        mx.module.Module.save_optimizer_states, store_class
    )
    mx.module.BucketingModule.get_params = seeing_changes(
        mx.module.BucketingModule.get_params, store_class
    )
    mx.gluon.Block.collect_params = remembering_network(mx.gluon.Block.collect_params)
    mx.gluon.Trainer.__init__ = _introducing_made_trainer(
        remembering_declaration(mx.gluon.Trainer.__init__), store_class
    )
    mx.gluon.Trainer._init_kvstore = _introducing_trainer(
        mx.gluon.Trainer._init_kvstore, store_class
    )
    mx.module.Module.init_optimizer = _introducing_module(
        _dividing_by_own_batch(mx.module.Module.init_optimizer, store_class), store_class
    )
    mx.module.Module.init_optimizer = loading_states_last(mx.module.Module.init_optimizer)
    mx.module.Module.borrow_optimizer = _keeping_lender(
        mx.module.Module.borrow_optimizer, store_class
    )


def _let_traces_know_networks() -> None:
    compiled, executors = TracedNetworks(), TracedExecutors()
    compiled.install()
    executors.install()
    for look in (compiled.look, executors.look, TracedBlocks().look):
        networks.add(look)


def _creating_state_for_copies(create: Callable[..., Any]) -> Callable[..., Any]:
    def create_state(optimizer: Any, index: Any, weight: Any) -> Any:
        if weight.stype == "default":
            return create(optimizer, index, weight)
        return mx.nd.sparse.zeros(weight.stype, weight.shape, weight.context, weight.dtype)

    return create_state


def _creating_known(create: Callable[..., Any]) -> Callable[..., Any]:
    def create_known(name: str = "local") -> Any:
        if not isinstance(name, str):
            return create(name)
        check_name(name)
        plain = name.lower()
        if plain in KVStoreBase.kv_registry or "dist" not in plain:
            return create(name)
        check_servers(name)
        report(joining=True)
        enter_stock_job()
        store = create(name)  # MXNet's own returns once the cluster stands
        report(joined=True)
        return store

    return create_known


def _made(kvstore: Any, store_class: type) -> Any:
    """A store of this class where it is the name of one, or else what it is."""
    if isinstance(kvstore, str):
        check_name(kvstore)
        kind = KVStoreBase.kv_registry.get(kvstore.lower())
        if isinstance(kind, type) and issubclass(kind, store_class):
            return mx.kv.create(kvstore)
    return kvstore


def _creating(create: Callable[..., Any], store_class: type) -> Callable[..., Any]:
    def create_kvstore(kvstore: Any, devices: int, parameters: Dict[str, Any]) -> Any:
        store, updates = create(_made(kvstore, store_class), devices, parameters)
        # Module takes no sums of these from a store, whatever that is capable of.
        sparse = any(value.stype != "default" for value in parameters.values())
        return store, updates or (isinstance(store, store_class) and sparse)

    return create_kvstore


def _refusing_methods(train: Callable[..., None], store_class: Any) -> Callable[..., None]:
    """FeedForward's training, which gives a store no parameters to begin with, and tells it of no
    optimizer."""
    signature = inspect.signature(train)

    def train_multi_device(*arguments: Any, **named: Any) -> None:
        store = signature.bind(*arguments, **named).arguments.get("kvstore")
        if isinstance(store, store_class) and store.method.compression is not None:
            raise KVStoreError(
                f"mx.model.FeedForward cannot train with the store {store.type}, whose method has "
                "to know more than it tells: train with Module, which has taken its place in MXNet"
            )
        train(*arguments, **named)

    return train_multi_device


def _creating_for_sparse_weights(
    create: Callable[..., Any], store_class: type
) -> Callable[..., Any]:
    """Any store of ours updates these on its servers, those too that prefer workers to update."""

    def create_sparse_kvstore(kvstore: Any) -> Any:
        store = _made(kvstore, store_class)
        return (store, True) if isinstance(store, store_class) else create(store)

    return create_sparse_kvstore


def _rescaling(check: Callable[..., None], store_class: Any) -> Callable[..., None]:
    scaled: WeakSet[Any] = WeakSet()  # those whose first step has said by how much

    def check_and_rescale_grad(trainer: Any, scale: float) -> None:
        store = trainer._kvstore
        if isinstance(store, store_class):
            if trainer in scaled and scale != trainer._optimizer.rescale_grad:
                _tell_of_other_scale(store)
            trainer._optimizer.rescale_grad = scale
        else:
            check(trainer, scale)
        scaled.add(trainer)

    return check_and_rescale_grad


def _tell_of_other_scale(store: Any) -> None:
    if store.method.carries_over:
        warn_script(
            "gradients are scaled otherwise than before, by another batch size or AMP: what "
            f"{store.type} has carried over from earlier rounds is scaled so, too, and counts as "
            "much more or less. A last batch that is smaller had better be left out, or filled up"
        )


def _beginning_step(push: Callable[..., None], store_class: Any) -> Callable[..., None]:
    """Steps may have no parameter in common, where a script freezes one half and trains another."""

    def allreduce_grads(trainer: Any) -> None:
        if isinstance(trainer._kvstore, store_class):
            trainer._kvstore.begin_step()
        push(trainer)

    return allreduce_grads


def _introducing_made_trainer(
    begin: Callable[..., None], store_class: Any
) -> Callable[..., None]:
    def init(trainer: Any, *arguments: Any, **named: Any) -> None:
        begin(trainer, *arguments, **named)
        store: Any = trainer._kvstore_params["kvstore"]
        if isinstance(store, store_class):
            store.include_in_snapshots(TrainerParameters(trainer))

    return init


def _introduce(store: Any, parameters: TrainedParameters, last_layer: List[Key]) -> None:
    """Tells a store what somebody trains with it."""
    parameters.call_apart(store.parts_in_snapshots().values())
    store.include_in_snapshots(parameters)
    store.replicate(parameters.replica)
    store.replicate(parameters.loss_scale)
    store.method.learn_last_layer(last_layer)


def _introducing_trainer(init: Callable[..., None], store_class: Any) -> Callable[..., None]:
    def init_kvstore(trainer: Any) -> None:
        init(trainer)
        store: Any = trainer._kvstore
        if not isinstance(store, store_class):
            return
        _introduce(store, TrainerParameters(trainer), last_layer_of_trainer(trainer))
        if not trainer._update_on_kvstore:
            store.adopt_optimizer(trainer._optimizer)
            trainer._updaters = [
                CarryingUpdater(updater.optimizer, store.method) for updater in trainer._updaters
            ]

    return init_kvstore


def _take_first_values(module: Any, store: Any) -> None:
    """Has a Module that updates by itself begin with rank 0's parameters: it gives the store its
    own, and takes none.

    Raises
    ------
    KVStoreError
        For a row-sparse gradient, of which Module would take no sum.
    """
    group = module._exec_group
    for name, weights, gradients in zip(
        module._param_names, group.param_arrays, group.grad_arrays
    ):
        if any(gradient is not None and gradient.stype != "default" for gradient in gradients):
            raise KVStoreError(
                f"the gradient of {name!r} is row-sparse, for which the servers have to update: "
                "give Module the store 'p3', and what compresses the others as "
                "compression_params, without MXNET_UPDATE_ON_KVSTORE=0"
            )
        store.pull(name, out=weights)
    module._params_dirty = True


def _dividing_by_own_batch(init: Callable[..., None], store_class: Any) -> Callable[..., None]:
    """Module divides by the batch of all workers or its own, as the store's type says before it has
    the method that Module was given."""
    signature = inspect.signature(init)

    def init_optimizer(module: Any, *arguments: Any, **named: Any) -> None:
        before = getattr(module, "_optimizer", None)
        init(module, *arguments, **named)
        given = signature.bind(module, *arguments, **named)
        given.apply_defaults()
        is_named = isinstance(given.arguments["optimizer"], str)
        if not is_named or module._optimizer is before:
            return
        is_told = "rescale_grad" in dict(given.arguments["optimizer_params"])
        store: Any = module._kvstore
        if isinstance(store, store_class) and store.method.trains_on_workers and not is_told:
            module._optimizer.rescale_grad = 1.0 / module._exec_group.batch_size

    return init_optimizer


def _keeping_lender(borrow: Callable[..., None], store_class: type) -> Callable[..., None]:
    """A Module that is bound with `shared_module` trains the parameters of that, and with its
    optimizer. Scripts put it into the other's place, which snapshots and `join` go by."""

    def borrow_optimizer(module: Any, shared_module: Any) -> None:
        borrow(module, shared_module)
        if isinstance(module._kvstore, store_class):
            module._lender = getattr(shared_module, "_lender", shared_module)
            vars(module._lender).setdefault("_borrowers", WeakSet()).add(module)

    return borrow_optimizer


def _introducing_module(init: Callable[..., None], store_class: Any) -> Callable[..., None]:
    def init_optimizer(module: Any, *arguments: Any, **named: Any) -> None:
        had = [getattr(module, name, None) for name in ("_optimizer", "_kvstore")]
        init(module, *arguments, **named)
        store: Any = module._kvstore
        # A script may give an optimizer to one store after the other.
        is_new = module._optimizer is not had[0] or store is not had[1]
        if isinstance(store, store_class) and is_new:
            vars(module).pop("_lender", None)
            if not module._update_on_kvstore:
                _take_first_values(module, store)
            _introduce(store, ModuleParameters(module), last_layer_of_module(module))
            if not module._update_on_kvstore:
                store.adopt_optimizer(module._optimizer)
                module._updater = CarryingUpdater(module._optimizer, store.method)

    return init_optimizer
