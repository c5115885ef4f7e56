"""Stand-ins for the functions of MXNet's operators."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import pytest
from kvstore_ext.mxnet_hooks.operators import making_when_called

FACTOR = 3  # of what MXNet's own functions take from their module


@pytest.fixture
def made() -> list[str]:
    return []


@pytest.fixture
def scale(made: list[str]) -> Callable[..., Any]:
    """What is registered of an operator, whose name is added to `made` with its function."""
    registered = {}

    def make(handle: int, operator: str, name: str) -> Callable[..., Any]:
        made.append(operator)
        scope: dict[str, Any] = {}
        exec(f"def {name}(x, by=2, out=None):\n    'Scales.'\n    return x * by * FACTOR",
             globals(), scope)
        return scope[name]

    def register(root: str, make_op_func: Callable[..., Any]) -> None:
        function = make_op_func(1, "_scale", "scale")
        registered[root + function.__name__] = function

    making_when_called(register)("mxnet.", make)
    return registered["mxnet.scale"]


def test_nothing_is_made_before_it_is_called(scale: Callable, made: list[str]) -> None:
    assert scale.__name__ == scale.__qualname__ == "scale"
    assert made == []


def test_it_is_made_once(scale: Callable, made: list[str]) -> None:
    assert [scale(1), scale(1, 4), scale(x=2, by=5, out=None)] == [6, 12, 30]
    assert made == ["_scale"]


def test_then_it_is_the_function_itself(scale: Callable) -> None:
    scale(1)
    assert str(inspect.signature(scale)).startswith("(x, by=2, out=None")
    assert scale.__doc__ == "Scales."
    with pytest.raises(TypeError, match="unexpected keyword argument 'times'"):
        scale(1, times=2)


def test_a_mistake_in_the_first_call_is_told_as_later(scale: Callable) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        scale()
    assert scale(1) == 6
