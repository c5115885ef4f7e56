"""What servers hear of an optimizer that a script changes in the middle of training.

MXNet sends an optimizer to the servers once, so that trainer.set_learning_rate() does nothing there
afterwards. Here rank 0 sends what has changed along with each key's next gradient: it holds from
that step on, for whatever is on the way. A schedule runs on rank 0, too, as in one process, and is
one more reason why the learning rate changes; so it may be of any class.

Where every worker updates by itself, all send their settings, and the servers compare them: workers
that update differently would go on with different parameters.
"""
from __future__ import annotations

import json
from typing import Any, Dict, Optional, Tuple

import mxnet as mx
import numpy as np

# What an optimizer looks a parameter's own factors up by -> (lr_mult, wd_mult).
Multipliers = Dict[Any, Tuple[float, float]]

# Counts are the servers' own.
_COUNTS = frozenset({"num_update", "begin_num_update", "aggregate_num"})
_TABLES = ("lr_mult", "wd_mult")


def multipliers(optimizer: mx.optimizer.Optimizer) -> Multipliers:
    """Gluon's lr_mult and wd_mult, which MXNet leaves behind when it pickles an optimizer."""
    return {
        index: (parameter.lr_mult, parameter.wd_mult)
        for index, parameter in optimizer.param_dict.items()
    }


def with_names(optimizer: mx.optimizer.Optimizer, table: str) -> Dict[Any, float]:
    """Its lr_mult or wd_mult, in which what is told of a parameter by its index stands under its
    name, too: a key that is a word, as all of Module's are, is looked up as that. What is told by
    the index goes first, as MXNet has it. Where nothing is, it is the table itself."""
    factors: Dict[Any, float] = getattr(optimizer, table)
    names = optimizer.idx2name
    if names.keys().isdisjoint(factors):
        return factors
    by_index = {name: factors[index] for index, name in names.items() if index in factors}
    return {**factors, **by_index}


class SettingsWatch:
    """Compares a worker's optimizer with what the servers were sent, or with nothing.

    Seen are its attributes that are numbers, words or nothing (lr, wd, rescale_grad, momentum and
    so on), lr_mult and wd_mult, those of Gluon's parameters, and what its lr_scheduler says.

    Parameters
    ----------
    optimizer
        As it is now.
    sent
        Whether the servers have it. Otherwise all settings are news.
    """

    def __init__(self, optimizer: mx.optimizer.Optimizer, sent: bool = True) -> None:
        self._first = _attributes(optimizer, scheduled_rate(optimizer)) if sent else {}
        self._multipliers = multipliers(optimizer) if sent else {}
        self._sent: Dict[Any, str] = {}
        # What the optimizer was like when its changes were last looked for, and those.
        self._seen: Any = None
        self._found: Dict[str, Any] = {}

    def forget(self, name: Any) -> None:
        """The key's servers are others from now on, and know nothing."""
        self._sent.pop(name, None)

    def news(
        self,
        optimizer: mx.optimizer.Optimizer,
        name: Any,
        own_batch: bool = False,
        by_number: bool = False,
    ) -> str:
        """What a key's servers must hear now, as text; empty where they know it. The optimizer's
        num_update is to be that of the key's next update. Where each worker divides by its own
        batch, rescale_grad is its own matter. Servers that know the key by a number do not find
        what the optimizer has for its name."""
        text = self._changes(optimizer, name, own_batch, by_number)
        if text == self._sent.get(name, ""):
            return ""
        self._sent[name] = text
        return text or "{}"

    def _changes(
        self, optimizer: mx.optimizer.Optimizer, name: Any, own_batch: bool, by_number: bool
    ) -> str:
        changes = dict(self._changed(optimizer))
        if own_batch:
            changes.pop("rescale_grad", None)
        parameter = optimizer.param_dict.get(name)
        if parameter is not None:
            own = (parameter.lr_mult, parameter.wd_mult)
            # One that the servers do not have goes before the tables there, even where it is 1.
            if own != self._multipliers.get(name):
                changes["own multipliers"] = own
        elif by_number:
            tables = [with_names(optimizer, table) for table in _TABLES]
            changes["own multipliers"] = [table.get(name, 1.0) for table in tables]
        return json.dumps(changes, default=_number) if changes else ""

    def _changed(self, optimizer: mx.optimizer.Optimizer) -> Dict[str, Any]:
        """Attributes that are not as they were sent. All keys of a step ask, mostly alike."""
        scheduled = scheduled_rate(optimizer)
        seen = (
            _simple_attributes(optimizer),  # the rest is not kept alive
            [dict(getattr(optimizer, table)) for table in _TABLES],
            scheduled,
        )
        if seen != self._seen:
            self._seen = seen
            self._found = {
                attribute: value
                for attribute, value in _attributes(optimizer, scheduled).items()
                if self._first.get(attribute, _MISSING) != value
            }
            for table in _TABLES:
                if table in self._found:
                    self._found[table] = list(self._found[table].items())
        return self._found


class SettingsFollower:
    """Gives a server's optimizer the settings that a gradient's worker had when it pushed it.

    Parameters
    ----------
    optimizer
        The server's own, as it was first sent.
    factors
        The parameters' multipliers at that time.
    """

    def __init__(self, optimizer: mx.optimizer.Optimizer, factors: Multipliers) -> None:
        self._optimizer = optimizer
        self._factors = factors
        if not optimizer.param_dict:
            optimizer.param_dict = {index: _Multiplier(*own) for index, own in factors.items()}
        self._first: Dict[str, Any] = {}  # of all that was ever changed
        self._text = ""
        self._changes: Dict[str, Any] = {}

    def apply(self, text: str, index: Any) -> None:
        """Takes over the settings that came with a gradient of the parameter `index`."""
        if text != self._text:
            self._take_over(json.loads(text) if text else {})
            self._text = text
        own = self._changes.get("own multipliers", self._factors.get(index))
        if own is not None:
            self._optimizer.param_dict[index] = _Multiplier(*own)
        else:
            self._optimizer.param_dict.pop(index, None)

    def _take_over(self, changes: Dict[str, Any]) -> None:
        for table in _TABLES:
            if table in changes:
                changes[table] = dict(map(tuple, changes[table]))
        values = {name: value for name, value in changes.items() if name != "own multipliers"}
        for name in values:
            self._first.setdefault(name, getattr(self._optimizer, name, None))
        for name, value in {**self._first, **values}.items():
            setattr(self._optimizer, name, value)
        self._changes = changes


class _Multiplier:
    """Stands in for the gluon Parameter that an optimizer asks for its multipliers."""

    def __init__(self, lr_mult: float, wd_mult: float) -> None:
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult


def _number(value: Any) -> Any:
    """What json writes for a number of NumPy's."""
    number = plain_number(value)
    if number is not value:
        return number
    raise TypeError(f"{value!r} of an optimizer is no number, but a {type(value).__name__}")


_MISSING = object()

# What json can carry.
_SIMPLE = (bool, int, float, str, type(None))


def plain_number(value: Any) -> Any:
    """A number of NumPy's, or an array of one without dimensions, as np.where makes, as Python has
    it; anything else as it is."""
    is_single = isinstance(value, np.ndarray) and value.ndim == 0
    return value.item() if is_single or isinstance(value, np.generic) else value


def scheduled_rate(optimizer: mx.optimizer.Optimizer) -> Optional[float]:
    """What its schedule says of the update that it has come to, at the least of the first, if it
    has one. There is no update 0 in MXNet, of which a user's own may say nothing."""
    if optimizer.lr_scheduler is None:
        return None
    return float(optimizer.lr_scheduler(max(1, optimizer.num_update)))


def _simple_attributes(optimizer: mx.optimizer.Optimizer) -> Dict[str, Any]:
    """Those that json can carry. Each push asks, and few of them are NumPy's."""
    found: Dict[str, Any] = {}
    for name, value in vars(optimizer).items():
        plain = value if isinstance(value, _SIMPLE) else plain_number(value)
        if isinstance(plain, _SIMPLE):
            found[name] = plain
    return found


def _attributes(
    optimizer: mx.optimizer.Optimizer, scheduled: Optional[float]
) -> Dict[str, Any]:
    """What a server has to hear of it, with what its schedule says."""
    simple = _simple_attributes(optimizer)
    found = {name: value for name, value in simple.items() if name not in _COUNTS}
    found.pop("lr_scheduler", None)
    if scheduled is not None:
        found["lr"] = scheduled
    for table in _TABLES:
        found[table] = dict(with_names(optimizer, table))
    return found
