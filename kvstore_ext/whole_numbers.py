"""Whole numbers that a script gives."""
from __future__ import annotations

import numbers
from typing import Any

from .errors import OptionError


def whole_number(name: str, value: Any, least: int, otherwise: str = "") -> int:
    """The value as an int, of whichever type of Python's or NumPy's whole numbers it is.

    Parameters
    ----------
    name
        What the error calls it.
    least
        The smallest that is allowed.
    otherwise
        What else is allowed, for the error: ", or None".

    Raises
    ------
    OptionError
        For a smaller one, and for what is no whole number. True and False are none.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        allowed = f"a whole number, {least} or more{otherwise}"
        raise OptionError(f"{name} is {value!r}; it must be {allowed}")
    return int(value)
