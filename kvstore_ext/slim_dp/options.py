"""Slim-DP's options (Sun et al., AAAI 2018)."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, List, Optional, Tuple, Union

import numpy as np

from .. import _core
from ..compression import Compression
from ..compression.options import Rule, choice, number, option, whole
from ..compression.store_context import StoreContext
from ..compression.store_method import StoreMethod
from ..errors import OptionError
from .method import SlimMethod


def _compresses_updates(method: Compression) -> bool:
    """Whether it has no options but those of how values are encoded."""
    if not method.encodes_parts or method.error_feedback or method.non_finite_ends_job:
        return False
    return not method.exclude and not method.exclude_last


@dataclass(frozen=True)
class SlimDP(Compression):
    """The core of the parameters and a random explorer (Slim-DP: Sun et al., AAAI 2018).

    Every worker trains a model of its own with the optimizer that the store is given, and every
    `p` steps pushes the update of alpha * n of the model's n parameters: the core, beta * n that
    matter most, and an explorer, drawn afresh by each worker from the others. The servers add
    `server_lr` times the mean of the workers' updates, an element's over all workers or over those
    that push it (`explorer_mean`), and the worker takes the global parameters of core and explorer
    over (algorithm 1). Every `q` rounds all updates are pushed, and the beta * n parameters with
    the largest |w| + c |g| (equation 1; g is the summed update; over all layers together; among
    equals the first ones) become the core. Numbers of parameters are rounded down.

    Beyond the paper: the explorer's indices need not travel, because the server draws it again;
    `core_delay`; and the updates may be compressed: one with NaN or infinity then ends the job. The
    global parameters come back as floats.
    """

    name: ClassVar[str] = "slim_dp"
    dtypes: ClassVar[Tuple[type, ...]] = (np.float32,)
    prefers_workers: ClassVar[bool] = False
    updates_on_workers: ClassVar[bool] = True
    store_type: ClassVar[Optional[str]] = "dist_slim_dp"

    alpha: float = number(0.3, "share of the parameters that travel in a round")
    beta: float = number(0.15, "share of the core, at most alpha; 0: at random only")
    p: int = number(1, "steps of local training from one round to the next", whole(1, 1 << 31))
    q: int = number(1000, "rounds from one choice of the core to the next")
    c: Union[str, float] = option(
        "auto",
        (str, float),
        Rule(
            "a number 0 or more, or auto",
            lambda value: value == "auto" or (isinstance(value, float) and value >= 0),
        ),
        "what |g| counts beside |w|; auto: the model's sum of |w| over that of |g|",
    )
    server_lr: float = number(1.0, "by which the mean update is multiplied (eta')")
    explorer: str = choice("seed", "keys: its indices travel along, as the paper has it")
    explorer_mean: str = choice(
        "pushed",
        "the mean of an explored element's updates is over the workers that push it; all: the "
        "others' count as 0, as in the paper's equation",
    )
    core_delay: int = number(
        0, "rounds, below q, until a new core takes effect; 0: it is waited for"
    )
    seed: int = number(0, "of the explorers; equal on all workers")
    values: Optional[Compression] = option(  # noqa: RUF009 - it declares a field
        None,
        (Compression, type(None)),
        Rule(
            "terngrad, qsgd or fp16, or its options as {'type': 'qsgd', 'bits': 8}, "
            "without error_feedback, non_finite, exclude and exclude_last",
            lambda value: value is None or _compresses_updates(value),
        ),
        "how updates are compressed on their way to the servers",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta > self.alpha:
            raise OptionError(
                f"slim_dp: beta is {self.beta!r}; it must be at most alpha, {self.alpha!r}"
            )
        if self.core_delay >= self.q:
            raise OptionError(
                f"slim_dp: core_delay is {self.core_delay}; it must be below q, {self.q}"
            )

    def in_store(self, context: StoreContext) -> StoreMethod:
        return SlimMethod(context, self)

    @property
    def selects(self) -> bool:
        """Whether there is anything to select: a core that is neither empty nor everything."""
        return 0 < self.beta < 1

    def sizes(self, parameters: int) -> Tuple[int, int]:
        """How many of so many parameters are in the core, and in core and explorer together.

        Raises
        ------
        OptionError
            Where there are none.
        """
        # A share such as 0.29 of 100 is a little less than 29 in binary.
        core, together = (
            math.floor(round(share * parameters, 6)) for share in (self.beta, self.alpha)
        )
        if together == 0 or (core == 0 and self.beta > 0):
            name, share = ("alpha", self.alpha) if together == 0 else ("beta", self.beta)
            raise OptionError(
                f"slim_dp: {name} is {share!r}, of {parameters} parameters none; it must be "
                f"{1 / parameters:.3g} or more"
            )
        return core, together

    @classmethod
    def core_options(cls) -> List[_core.MethodOption]:
        return _core.slim_options()

    def specification(self, shape: Tuple[int, ...]) -> str:
        own = super().specification(shape)
        return own if self.values is None else f"{own} values: {self.values.specification(shape)}"
