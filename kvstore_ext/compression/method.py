"""What a method of compression is: its options, and what the rest of the store asks of it."""
from __future__ import annotations

from dataclasses import dataclass, fields
from fnmatch import fnmatch
from typing import Any, ClassVar, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np

from .. import _core
from ..errors import OptionError
from .gradient_method import GradientMethod
from .options import Rule, check, choice, flag, option, rules, specification
from .store_context import StoreContext
from .store_method import StoreMethod


def _keys(why: str) -> Any:
    """An option that names keys."""
    rule = Rule(
        "keys, or patterns of names",
        lambda value: all(type(element) in (int, str) for element in value),
    )
    return option((), tuple, rule, why)


def _names(wanted: Union[int, str], key: Union[int, str], name: Optional[str]) -> bool:
    """Whether an element of such an option names a key, or its parameter, where that is known."""
    texts = [text for text in (key, name) if isinstance(text, str)]
    return key == wanted or (
        isinstance(wanted, str) and any(fnmatch(text, wanted) for text in texts)
    )


@dataclass(frozen=True)
class Compression:
    """What all methods have in common."""

    name: ClassVar[str]
    # The types of the arrays that it takes.
    dtypes: ClassVar[Tuple[type, ...]] = (np.float32, np.float16)
    # Whether row-sparse arrays travel uncompressed; otherwise they are refused.
    sparse_travels_plain: ClassVar[bool] = True
    # Whether it applies SGD's momentum in the optimizer's stead, also of excluded keys.
    applies_momentum: ClassVar[bool] = False
    # Whether an optimizer had better run on the workers, so that sums travel back compressed.
    prefers_workers: ClassVar[bool] = True
    # Whether any part of a gradient can be encoded by itself, and nothing is kept for the next one.
    encodes_parts: ClassVar[bool] = False
    # The `type` of all stores that have it; None where they keep that of their name.
    store_type: ClassVar[Optional[str]] = None
    # Whether an optimizer has to run on the workers: one on the servers would see the sum, and not
    # what the method makes of it on the way back.
    updates_on_workers: ClassVar[bool] = False

    exclude: Tuple[Union[int, str], ...] = _keys(
        "keys that travel uncompressed: [0, 'fc*', '*_bias']"
    )

    @property
    def non_finite_ends_job(self) -> bool:
        """Whether values that are not finite end the job, where they cannot be compressed."""
        return True

    @property
    def error_feedback(self) -> bool:
        """Whether what an encoding leaves out is added to the next round's gradient."""
        return False

    @property
    def carries_over(self) -> bool:
        """Whether something of a round's gradient is left for later ones, in whichever way."""
        return self.error_feedback

    @property
    def exclude_last(self) -> bool:
        """Whether the network's last layer travels uncompressed."""
        return False

    @property
    def last_layer(self) -> Tuple[Union[int, str], ...]:
        """Which keys that layer has, or patterns of their names; none to find it out."""
        return ()

    def in_store(self, context: StoreContext) -> StoreMethod:
        """What it decides in one store."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        allowed = self.rules()
        for known in fields(self):
            check(self.name, known, allowed[known.name], getattr(self, known.name))

    @classmethod
    def core_options(cls) -> List[_core.MethodOption]:
        """The options that the core knows, and what each may be."""
        return _core.codec_options(cls.name)

    @classmethod
    def rules(cls) -> Dict[str, Rule]:
        """What each option may be, by name."""
        return rules(fields(cls), cls.core_options())

    def excludes(self, key: Union[int, str], name: Optional[str]) -> bool:
        """Whether a key, with the name of its parameter where it is known, stays uncompressed."""
        return any(_names(wanted, key, name) for wanted in self.exclude)

    def excluded_in_vain(
        self, keys: Iterable[Tuple[Union[int, str], Optional[str]]]
    ) -> List[Union[int, str]]:
        """What the option exclude has that names none of these, keys and parameters' names."""
        known = list(keys)
        return [
            wanted
            for wanted in self.exclude
            if not any(_names(wanted, key, name) for key, name in known)
        ]

    def is_last(self, key: Union[int, str], name: Optional[str]) -> bool:
        """Whether the option last_layer names a key, as `excludes`."""
        return any(_names(wanted, key, name) for wanted in self.last_layer)

    def core_values(self, shape: Tuple[int, ...]) -> Dict[str, Any]:
        """What the core is told of each option that it knows, for a key of this shape."""
        del shape
        return {known.name: getattr(self, known.name) for known in self.core_options()}

    def specification(self, shape: Tuple[int, ...]) -> str:
        """All that the core is told, for a key of this shape (csrc/codecs/method_options.h)."""
        return specification(self.name, self.core_values(shape))


@dataclass(frozen=True)
class GradientCompression(Compression):
    """What the methods have in common that make gradients small."""

    non_finite: str = choice(
        "skip",
        "a gradient with NaN or infinity: skip the key's round on all workers, or end the job",
        ("skip", "raise"),
    )
    exclude_last: bool = flag(
        False, "let the last layer travel uncompressed, as TernGrad's paper does for ImageNet"
    )
    last_layer: Tuple[Union[int, str], ...] = _keys(
        "the keys of that layer, ['fc8*']; without it that which Trainer, Module and "
        "adopt_optimizer tell"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last_layer and not self.exclude_last:
            raise OptionError(
                f"{self.name}: last_layer is {list(self.last_layer)} and exclude_last is False; "
                "exclude_last must be True, or last_layer left out"
            )

    @property
    def non_finite_ends_job(self) -> bool:
        return self.non_finite == "raise"

    def in_store(self, context: StoreContext) -> StoreMethod:
        return GradientMethod(context, self)
