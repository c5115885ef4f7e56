"""Ways to make gradients small on their way to the servers, and their sums on the way back.

A method is one file here, which says what users can tell it and where it comes from, and one codec
in the core, a pair of C++ files, which does the work. What this room promises: nothing outside asks
which method a store has, only what `Compression` and `StoreMethod` say of it. In reading order:

    store_context.py    what a store's method gets to know of the store
    store_method.py     what a store's method decides: the interface that the store calls
    last_layer.py       which parameters are the last layer's
    gradient_method.py  what one decides that compresses gradients
    momentum.py         whose momentum is applied where, and what that means for weight decay
    carry_over.py       what is left of a round for the next one
    method.py           Compression: what every method says of itself
    options.py          how an option is declared and checked; ranges are the core's
    terngrad.py, qsgd.py, dgc.py, one_bit.py, sign_sgd.py, half.py, two_bit.py   the methods
    registry.py         the methods by name; what set_gradient_compression takes
    in_words.py         how a snapshot's compression differs from a run's

To add a method: its file here, its codec in the core with an entry in csrc/codecs/codec_list.cc,
and its class in ../methods.py, which registers all. This package imports errors, notes, spelling,
config, keys, protocol and _core, and nothing else of kvstore_ext.
"""
from .in_words import differing
from .method import Compression, GradientCompression
from .registry import (
    OF_STORES,
    TYPES,
    describe,
    option_names,
    options_of_environment,
    parse,
    register,
)

__all__ = [
    "OF_STORES",
    "TYPES",
    "Compression",
    "GradientCompression",
    "describe",
    "differing",
    "option_names",
    "options_of_environment",
    "parse",
    "register",
]
