"""Ways to make gradients small on their way, and sums back, each with its options."""
from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from fnmatch import fnmatch
from typing import ClassVar, Optional, Tuple, Union

import numpy as np

from .gradient_method import GradientMethod
from .method_options import check, choice, flag, number, words
from .store_context import StoreContext
from .store_method import StoreMethod


@dataclass(frozen=True)
class Compression:
    """What all types have in common."""

    name: ClassVar[str]
    # Whether an optimizer had better run on the workers, so that sums travel back compressed.
    prefers_workers: ClassVar[bool] = True
    # Of the arrays that it takes.
    dtypes: ClassVar[Tuple[type, ...]] = (np.float32, np.float16)
    # Whether row-sparse arrays travel uncompressed; otherwise they are refused.
    sparse_travels_plain: ClassVar[bool] = True
    # Whether it takes the momentum of SGD over, for excluded keys as well.
    applies_momentum: ClassVar[bool] = False
    # The `type` of all stores that have it; None where they keep that of their name.
    store_type: ClassVar[Optional[str]] = None

    exclude: Tuple[Union[int, str], ...] = field(
        default=(),
        metadata={
            "kind": tuple,
            "fits": lambda _: True,
            "allowed": "keys, or patterns of names",
            "why": "keys that travel uncompressed: [0, 'fc*', '*_bias']",
        },
    )

    @property
    def non_finite_ends_job(self) -> bool:
        """Whether values that are not finite end the job, where they cannot be compressed."""
        return True

    @property
    def exclude_last(self) -> bool:
        """Whether the layer that is needed last travels uncompressed."""
        return False

    def in_store(self, context: StoreContext) -> StoreMethod:
        """What it decides in one store."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        for known in fields(self):
            check(self.name, known, getattr(self, known.name))

    def excludes(self, key: Union[int, str], name: Optional[str]) -> bool:
        """Whether a key, with the name of its parameter where it is known, stays uncompressed."""
        for excluded in self.exclude:
            if key == excluded:
                return True
            names = [text for text in (key, name) if isinstance(text, str)]
            if isinstance(excluded, str) and any(fnmatch(text, excluded) for text in names):
                return True
        return False

    def specification(self, shape: Tuple[int, ...]) -> str:
        """For the core (csrc/codec.h), of a key of this shape."""
        raise NotImplementedError


@dataclass(frozen=True)
class GradientCompression(Compression):
    """What the types have in common that make gradients small."""

    non_finite: str = choice(
        "skip",
        ("skip", "raise"),
        "a gradient with NaN or infinity: skip the key's round on all workers, or end the job",
    )
    exclude_last: bool = flag(
        False, "let the layer that is needed last travel uncompressed, once the order is learned"
    )

    @property
    def non_finite_ends_job(self) -> bool:
        return self.non_finite == "raise"

    def in_store(self, context: StoreContext) -> StoreMethod:
        return GradientMethod(context, self)


@dataclass(frozen=True)
class TernGrad(GradientCompression):
    """Three values an element, drawn at random about the gradient (Wen et al., NeurIPS 2017).

    A gradient is clipped (equation 21), scaled by its key's largest element (equation 2; layer by
    layer, a bias being a key of its own), and each element rounded at random to -1, 0 or 1 so that
    the mean is right (equations 1 and 3). With a shared scaler (equation 4) the sum has 2N + 1
    values for N workers, and travels back as such; workers apply it to parameters of their own
    (section 3.1). Beyond the paper: error feedback.
    """

    name: ClassVar[str] = "terngrad"

    clip_sigma: float = number(
        2.5,
        0,
        math.inf,
        "gradients are clipped at so many standard deviations of their key's; 0: not at all",
    )
    scaler_sharing: bool = flag(
        True, "scale by the largest of the workers' scalers; without it sums travel back as floats"
    )
    seed: int = number(0, 0, 1 << 53, "of the random numbers; equal on all workers")
    error_feedback: bool = flag(
        False, "add what rounding and clipping left out to the next round's gradient"
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        flags = (self.scaler_sharing, self.seed, self.error_feedback)
        return words("terngrad", self.clip_sigma, *flags)


@dataclass(frozen=True)
class QSGD(GradientCompression):
    """A few bits an element, drawn at random about the gradient (Alistarh et al., NeurIPS 2017).

    Each bucket is scaled by its norm, and each element rounded at random to a multiple of
    norm / (2^(bits - 1) - 1) so that the mean is right; a bit is the sign. The sum is rounded so
    again on its way back. 8 bits and buckets of 512 are Slim-DP's Quant-DP (section 4).
    """

    name: ClassVar[str] = "qsgd"

    bits: int = number(8, 2, 8, "bits an element, the sign included")
    bucket: int = number(512, 1, 1 << 24, "elements that share a norm, of 32 bits")
    norm: str = choice(
        "l2", ("l2", "max"), "what a bucket is scaled by; max varies less, l2 sends more zeros"
    )
    seed: int = number(0, 0, 1 << 53, "of the random numbers; equal on all workers")
    error_feedback: bool = flag(
        False, "add what rounding left out to the next round, on workers and servers"
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        norm = 2 if self.norm == "l2" else 0
        return words("qsgd", self.bits, self.bucket, norm, self.seed, self.error_feedback)


@dataclass(frozen=True)
class DGC(GradientCompression):
    """The largest elements of accumulated gradients (Lin et al., ICLR 2018).

    A worker adds up its gradients with momentum, and sends the elements that have grown largest;
    the others go on accumulating, and the momentum of those sent is cleared (momentum correction
    and factor masking). The momentum is taken over from an SGD optimizer, whose own becomes 0. The
    sum travels back with its non-zero elements. Beyond the paper: the count of elements is exact
    for each key.
    """

    name: ClassVar[str] = "dgc"
    applies_momentum: ClassVar[bool] = True

    ratio: float = number(0.001, 0, 1, "share of elements sent in the end", above=True)
    warmup_rounds: int = number(
        0, 0, 1 << 31, "rounds in which the share falls from a quarter; the paper's are 4 epochs"
    )
    warmup_stages: int = number(4, 1, 1000, "steps in which it falls, exponentially")
    clip_norm: float = number(
        0.0,
        0,
        math.inf,
        "l2 norm that a key's gradient is clipped at, over sqrt(workers) on each; 0: not at all",
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        warmup = (self.warmup_rounds, self.warmup_stages)
        return words("dgc", self.ratio, *warmup, self.clip_norm)


@dataclass(frozen=True)
class OneBit(GradientCompression):
    """The sign of each element, and two means a bucket (Seide et al., Interspeech 2014).

    What the means miss is added to the next round's gradient, and on the servers to the next sum,
    which travels back likewise.
    """

    name: ClassVar[str] = "onebit"

    bucket: int = number(
        512, 0, 1 << 24, "elements that share two means, of 32 bits each; 0: the paper's columns"
    )
    error_feedback: bool = flag(True, "without it training does not converge in general")

    def specification(self, shape: Tuple[int, ...]) -> str:
        # A column of the paper's matrices holds the weights into one unit: here, all but the first
        # dimension. A bias has no columns.
        columns = math.prod(shape[1:]) if len(shape) > 1 else 512
        bucket = self.bucket or max(1, columns)
        return words("onebit", bucket, self.error_feedback)


@dataclass(frozen=True)
class Half(GradientCompression):
    """float16 both ways, rounded to nearest; beyond its range the largest that it has."""

    name: ClassVar[str] = "fp16"

    error_feedback: bool = flag(
        False, "add what rounding left out to the next round, on workers and servers"
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        return words("fp16", self.error_feedback)


@dataclass(frozen=True)
class TwoBit(GradientCompression):
    """MXNet's own compression, with its numbers: three values an element, the rest is carried over.

    An element of the gradient and what was left of it in earlier rounds travels as `threshold`, its
    negative or zero, whichever it reaches; what is left stays for the next round. The answer is not
    compressed. For float32 only.
    """

    name: ClassVar[str] = "2bit"
    prefers_workers: ClassVar[bool] = False
    dtypes: ClassVar[Tuple[type, ...]] = (np.float32,)
    sparse_travels_plain: ClassVar[bool] = False  # MXNet refuses them

    threshold: float = number(
        0.5,
        0,
        math.inf,
        "far above the gradients' size nothing is sent for long, far below much is left behind",
        above=True,
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        return words("2bit", self.threshold)
