"""What a Trainer or Module has of a run, for the snapshots of its store and for store.join."""
from __future__ import annotations

import ast
import weakref
from typing import Any, Dict, Iterable, List, Optional

import mxnet as mx
import numpy as np

from ..copies import copied, resume
from ..errors import KVStoreError
from ..keys.names import classic
from ..optimizer.replica import Counted, Item, Replica, States
from ..snapshots.part import About, Part, SnapshotError, name_apart

Parameters = Dict[Any, List[mx.nd.NDArray]]  # each an array a device


class TrainedParameters(Part):
    """The parameters that Trainer or Module trains, and an optimizer that it runs itself.

    Those without gradients, such as running averages, are each worker's own. The others are those
    of the store, where that updates them; where Trainer or Module does, all workers have them
    alike.

    Parameters
    ----------
    owner
        The Trainer or Module. Its store has this part, so it is not kept alive.
    """

    def __init__(self, owner: Any) -> None:
        self._owner: Any = weakref.ref(owner)

    def may_replace(self, other: Part) -> bool:
        return isinstance(other, TrainedParameters)

    @property
    def gone(self) -> bool:
        return self._owner() is None

    def call_apart(self, others: Iterable[Part]) -> None:
        """Takes a name of its own where another owner's part of the same kind is among these."""
        taken = {part.name for part in others
                 if isinstance(part, type(self)) and part._owner() is not self._owner()}
        self.name = name_apart(type(self).name, taken)

    def trained(self) -> Parameters:
        """Parameters with gradients, by the store's keys."""
        raise NotImplementedError

    def untrained(self) -> Parameters:
        """The others, by names of any kind."""
        raise NotImplementedError

    def updaters(self) -> List[Any]:
        """Those of an optimizer that it runs itself."""
        raise NotImplementedError

    def states(self, name: Any) -> States:
        """Where these have the state of a parameter, for each of its arrays."""
        raise NotImplementedError

    def replica(self) -> Optional[Replica]:
        """What it updates by itself, as it does on all workers; None where the store does, and once
        it is gone."""
        if self.gone or not self.updaters():
            return None
        items = [
            Item(str(name), arrays, self.states(name)) for name, arrays in self.trained().items()
        ]
        return Replica(self._owner()._optimizer, items)

    def loss_scale(self) -> Optional[Counted]:
        """What AMP counts to find its scale; None without it, and once the owner is gone."""
        scaler = None if self.gone else self._loss_scaler()
        return None if scaler is None else Counted(vars(scaler))

    def _loss_scaler(self) -> Any:
        """That of MXNet's AMP; None without it."""
        return getattr(self._owner(), "_amp_loss_scaler", None)

    def shared(self) -> Any:
        updaters = self.updaters()
        if not updaters:
            return None
        values = {name: copied(arrays[0]) for name, arrays in self.trained().items()}
        states, optimizer = updaters[0].saved()
        return {"values": values, "states": states, "optimizer": optimizer}

    def own(self, rank: int) -> Any:
        untrained = self.untrained()
        if untrained:
            # The engine does not know that a backward pass changes running averages, so that a copy
            # may come before it, or in its midst.
            self._owner()._kvstore._lane.wait_for_all()
        return copied(untrained)

    def at_hand(self) -> Dict[Any, mx.nd.NDArray]:
        method = self._owner()._kvstore.method
        of_store = {} if self.updaters() else self.trained()
        return {name: arrays[0] for name, arrays in of_store.items() if not method.trains(name)}

    def put_back(self, shared: Any, own: Any, is_own: bool) -> None:
        store = self._owner()._kvstore
        values = {} if shared is None else shared["values"]
        # By where the snapshot has them: scripts freeze parameters, and go on training them later.
        for name, arrays in {**self.untrained(), **self.trained()}.items():
            if name in own:
                for device, array in enumerate(arrays):
                    own[name][min(device, len(own[name]) - 1)].copyto(array)
            elif name in values:
                for array in arrays:
                    values[name].copyto(array)
            elif not store.method.trains(name):
                store.pull(name, out=arrays)
        for updater in self.updaters():
            resume(updater.optimizer, shared["optimizer"])
            updater.resume(copied(shared["states"]))  # each its own, which it changes in place


# In what a Trainer's part says of itself.
_ORDER = "the places at which its parameters were declared"


class TrainerParameters(TrainedParameters):
    """Those of a Trainer, whose store has no keys before its first step."""

    name = "Trainer"

    def trained(self) -> Parameters:
        return self._with_gradients(True)

    def untrained(self) -> Parameters:
        return self._with_gradients(False)

    def _with_gradients(self, wanted: bool) -> Parameters:
        return {
            key: [classic(array) for array in parameter.list_data()]
            for key, parameter in enumerate(self._owner()._params)
            # Rows of row-sparse ones come from the store with every forward pass.
            if (parameter.grad_req != "null") == wanted and parameter._stype == "default"
        }

    def updaters(self) -> List[Any]:
        trainer = self._owner()
        return [] if trainer._update_on_kvstore else list(trainer._updaters)

    def states(self, name: Any) -> States:
        return [(updater, name) for updater in self.updaters()]

    def about(self) -> About:
        trainer = self._owner()
        told = {
            f"parameter {key}": _described(parameter)
            for key, parameter in enumerate(trainer._params)
        }
        return {
            **told,
            _ORDER: _order_of(trainer),
            "an optimizer": type(trainer._optimizer).__name__,
        }

    def check(self, saved: About) -> None:
        # A shape that a first forward pass would tell may become any of as many dimensions.
        for key, parameter in enumerate(self._owner()._params):
            told = saved.get(f"parameter {key}", "")
            if parameter._deferred_init and told and _may_become(parameter, told):
                saved = {**saved, f"parameter {key}": _described(parameter)}
        order = _order_of(self._owner())
        super().check({**saved, _ORDER: order})  # what earlier snapshots have none of
        if saved.get(_ORDER, order) != order:
            raise SnapshotError(
                "its Trainer numbered the network's parameters in another order, which is that of "
                "their names, such as dense10 before dense2; make as many networks before this one "
                "as there were, or give it a prefix"
            )

    def prepare(self, saved: About) -> None:
        self.check(saved)
        for key, parameter in enumerate(self._owner()._params):
            if parameter._deferred_init:
                parameter.shape = _shape_in(saved[f"parameter {key}"])
                parameter._finish_deferred_init()
        self._give_to_store()

    def own(self, rank: int) -> Any:
        # A Trainer whose first step is still to come may be part of another's run.
        for parameter in self._owner()._params:
            if parameter._deferred_init:
                raise KVStoreError(
                    f"a snapshot has to have {parameter.name}, whose shape is not known yet: run "
                    "the network forward once before the first snapshot"
                )
        self._give_to_store()
        return super().own(rank)

    def shared(self) -> Any:
        found, scaler = super().shared(), self._loss_scaler()
        if scaler is None:
            return found
        return {**(found or {"values": {}}), "loss scale": dict(vars(scaler))}

    def put_back(self, shared: Any, own: Any, is_own: bool) -> None:
        super().put_back(shared, own, is_own)
        scaler = self._loss_scaler()
        if scaler is not None:
            vars(scaler).update((shared or {}).get("loss scale", {}))

    def _give_to_store(self) -> None:
        trainer = self._owner()
        if not trainer._kv_initialized:
            trainer._init_kvstore()
        if trainer._params_to_init:
            trainer._init_params()


def _order_of(trainer: Any) -> str:
    """At which place of the network each of a Trainer's parameters was declared; "" where that is
    not known. The Trainer has them sorted by names, which MXNet counts up in a process."""
    declaration = getattr(trainer, "_declaration", None)
    if declaration is None:
        return ""
    places = {id(parameter): place for place, parameter in enumerate(declaration.parameters)}
    return " ".join(str(places[id(parameter)]) for parameter in trainer._params)


class ModuleParameters(TrainedParameters):
    """Those of a Module, once it has an optimizer."""

    name = "Module"

    def trained(self) -> Parameters:
        group = self._owner()._exec_group
        arrays = zip(group.param_names, group.param_arrays, group.grad_arrays)
        return {name: values for name, values, gradients in arrays if gradients[0] is not None}

    def untrained(self) -> Parameters:
        group = self._owner()._exec_group
        trained = self.trained()
        arrays = [
            *zip(group.param_names, group.param_arrays),
            *zip(group.aux_names, group.aux_arrays),
        ]
        return {name: values for name, values in arrays if name not in trained}

    def updaters(self) -> List[Any]:
        module = self._owner()
        return [] if module._update_on_kvstore else [module._updater]

    def states(self, name: Any) -> States:
        module = self._owner()
        devices = len(module._context)
        first = module._exec_group.param_names.index(name) * devices
        return [(module._updater, first + device) for device in range(devices)]

    def replica(self) -> Optional[Replica]:
        if not self.gone:
            self._note_changed()  # by others, as get_params is to see
        return super().replica()

    def about(self) -> About:
        parameters = {**self.trained(), **self.untrained()}
        told = {
            f"parameter {name!r}": _text(arrays[0].shape, arrays[0].dtype)
            for name, arrays in parameters.items()
        }
        if self.updaters():  # which number states by devices
            told["devices"] = str(len(self._owner()._context))
        return {**told, "an optimizer": type(self._owner()._optimizer).__name__}

    def put_back(self, shared: Any, own: Any, is_own: bool) -> None:
        super().put_back(shared, own, is_own)
        self._note_changed()

    def _note_changed(self) -> None:
        """Has get_params take the parameters anew, also of Modules that train the same ones."""
        module = self._owner()
        for each in (module, *getattr(module, "_borrowers", ())):
            each._params_dirty = True


def _described(parameter: mx.gluon.Parameter) -> str:
    # Of some not even the number of dimensions is known before a first forward pass.
    shape = None if parameter.shape is None else tuple(parameter.shape)
    return _text(shape, parameter.dtype)


def _text(shape: Any, dtype: Any) -> str:
    return f"{np.dtype(dtype).name} {shape}"


def _shape_in(text: str) -> Any:
    return ast.literal_eval(text.split(" ", 1)[1])


def _may_become(parameter: mx.gluon.Parameter, text: str) -> bool:
    if not text.startswith(np.dtype(parameter.dtype).name + " "):
        return False
    found, wanted = parameter.shape, _shape_in(text)
    if found is None or wanted is None:
        return wanted is not None
    return len(found) == len(wanted) and all(a in (-1, 0, b) for a, b in zip(found, wanted))
