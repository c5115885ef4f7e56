"""Operators of MXNet whose Python functions are made when they are called.

Importing mxnet writes and compiles 3,300 functions, of all operators in each of several modules,
which is a third of what it takes. Training calls a few dozen.
"""
from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any, Callable


def making_when_called(register: Callable[..., None]) -> Callable[..., None]:
    """MXNet's `register`, a function of mxnet.base with an argument `make_op_func`, but for
    stand-ins.

    A stand-in has an operator's name, and neither its signature nor its documentation before it
    is called. From its first call on it is the function that MXNet would have made.
    """
    signature = inspect.signature(register)

    def registering(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        make = bound.arguments["make_op_func"]
        bound.arguments["make_op_func"] = lambda *operator: _stand_in(make, operator)
        register(*bound.args, **bound.kwargs)

    return registering


def _stand_in(make: Any, operator: Any) -> Callable[..., Any]:
    def made() -> Callable[..., Any]:
        whole = make(*operator)
        # The code comes last: another thread may call the stand-in meanwhile.
        function.__doc__ = function.__doc__ or whole.__doc__
        function.__defaults__ = whole.__defaults__
        function.__code__ = whole.__code__
        return function

    # Of the same globals as what MXNet makes, since a function keeps those that it has.
    function = FunctionType(_call.__code__, make.__globals__, operator[-1])
    function.__qualname__ = operator[-1]  # by which pickle finds it
    function.__kwdefaults__ = {"_made": made}
    function.__doc__ = ""
    return function


def _call(*args: Any, _made: Callable[[], Callable[..., Any]], **kwargs: Any) -> Any:
    return _made()(*args, **kwargs)
