"""What set_gradient_compression takes: ways to make gradients small on their way, and sums back."""
from __future__ import annotations

import math
from dataclasses import Field, dataclass, field, fields
from fnmatch import fnmatch
from typing import Any, ClassVar, Dict, List, Optional, Tuple, Type, Union

import numpy as np

from .errors import OptionError

Number = Union[int, float]


def _number(default: Number, least: Number, most: Number, why: str, above: bool = False) -> Any:
    """An option that is a number from `least`, or above it, to `most`."""
    kind = int if isinstance(default, int) else float
    start = f"above {least}" if above else f"{least}"
    end = f" to {most}" if most < math.inf else "" if above else " or more"
    allowed = f"a {'whole ' if kind is int else ''}number {start}{end}"

    def fits(value: Any) -> bool:
        return (value > least if above else value >= least) and value <= most

    return _option(default, kind, fits, allowed, why)


def _flag(default: bool, why: str) -> Any:
    return _option(default, bool, lambda _: True, "true or false", why)


def _choice(default: str, choices: Tuple[str, ...], why: str) -> Any:
    return _option(default, str, lambda value: value in choices, " or ".join(choices), why)


def _option(default: Any, kind: type, fits: Any, allowed: str, why: str) -> Any:
    about = {"kind": kind, "fits": fits, "allowed": allowed, "why": why}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Compression:
    """What all types have in common but MXNet's own."""

    name: ClassVar[str]
    # Whether an optimizer had better run on the workers, so that sums travel back compressed.
    prefers_workers: ClassVar[bool] = True

    non_finite: str = _choice(
        "skip",
        ("skip", "raise"),
        "a gradient with NaN or infinity: skip the key's round on all workers, or end the job",
    )
    exclude: Tuple[Union[int, str], ...] = field(
        default=(),
        metadata={
            "kind": tuple,
            "fits": lambda _: True,
            "allowed": "keys, or patterns of names",
            "why": "keys that travel uncompressed: [0, 'fc*', '*_bias']",
        },
    )
    exclude_last: bool = _flag(
        False, "let the layer that is needed last travel uncompressed, once the order is learned"
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            _check(self.name, option, getattr(self, option.name))

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
class TernGrad(Compression):
    """Three values an element, drawn at random about the gradient (Wen et al., NeurIPS 2017).

    A gradient is clipped (equation 21), scaled by its key's largest element (equation 2; layer by
    layer, a bias being a key of its own), and each element rounded at random to -1, 0 or 1 so that
    the mean is right (equations 1 and 3). With a shared scaler (equation 4) the sum has 2N + 1
    values for N workers, and travels back as such; workers apply it to parameters of their own
    (section 3.1). Beyond the paper: error feedback.
    """

    name: ClassVar[str] = "terngrad"

    clip_sigma: float = _number(
        2.5,
        0,
        math.inf,
        "gradients are clipped at so many standard deviations of their key's; 0: not at all",
    )
    scaler_sharing: bool = _flag(
        True, "scale by the largest of the workers' scalers; without it sums travel back as floats"
    )
    seed: int = _number(0, 0, 1 << 53, "of the random numbers; equal on all workers")
    error_feedback: bool = _flag(
        False, "add what rounding and clipping left out to the next round's gradient"
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        flags = (self.scaler_sharing, self.seed, self.error_feedback)
        return _words("terngrad", self.clip_sigma, *flags)


@dataclass(frozen=True)
class QSGD(Compression):
    """A few bits an element, drawn at random about the gradient (Alistarh et al., NeurIPS 2017).

    Each bucket is scaled by its norm, and each element rounded at random to a multiple of
    norm / (2^(bits - 1) - 1) so that the mean is right; a bit is the sign. The sum is rounded so
    again on its way back. 8 bits and buckets of 512 are Slim-DP's Quant-DP (section 4).
    """

    name: ClassVar[str] = "qsgd"

    bits: int = _number(8, 2, 8, "bits an element, the sign included")
    bucket: int = _number(512, 1, 1 << 24, "elements that share a norm, of 32 bits")
    norm: str = _choice(
        "l2", ("l2", "max"), "what a bucket is scaled by; max varies less, l2 sends more zeros"
    )
    seed: int = _number(0, 0, 1 << 53, "of the random numbers; equal on all workers")
    error_feedback: bool = _flag(
        False, "add what rounding left out to the next round, on workers and servers"
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        norm = 2 if self.norm == "l2" else 0
        return _words("qsgd", self.bits, self.bucket, norm, self.seed, self.error_feedback)


@dataclass(frozen=True)
class DGC(Compression):
    """The largest elements of accumulated gradients (Lin et al., ICLR 2018).

    A worker adds up its gradients with momentum, and sends the elements that have grown largest;
    the others go on accumulating, and the momentum of those sent is cleared (momentum correction
    and factor masking). The momentum is taken over from an SGD optimizer, whose own becomes 0. The
    sum travels back with its non-zero elements. Beyond the paper: the count of elements is exact
    for each key.
    """

    name: ClassVar[str] = "dgc"

    ratio: float = _number(0.001, 0, 1, "share of elements sent in the end", above=True)
    warmup_rounds: int = _number(
        0, 0, 1 << 31, "rounds in which the share falls from a quarter; the paper's are 4 epochs"
    )
    warmup_stages: int = _number(4, 1, 1000, "steps in which it falls, exponentially")
    clip_norm: float = _number(
        0.0,
        0,
        math.inf,
        "l2 norm that a key's gradient is clipped at, over sqrt(workers) on each; 0: not at all",
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        warmup = (self.warmup_rounds, self.warmup_stages)
        return _words("dgc", self.ratio, *warmup, self.clip_norm)


@dataclass(frozen=True)
class OneBit(Compression):
    """The sign of each element, and two means a bucket (Seide et al., Interspeech 2014).

    What the means miss is added to the next round's gradient, and on the servers to the next sum,
    which travels back likewise.
    """

    name: ClassVar[str] = "onebit"

    bucket: int = _number(
        512, 0, 1 << 24, "elements that share two means, of 32 bits each; 0: the paper's columns"
    )
    error_feedback: bool = _flag(True, "without it training does not converge in general")

    def specification(self, shape: Tuple[int, ...]) -> str:
        # A column of the paper's matrices holds the weights into one unit: here, all but the first
        # dimension. A bias has no columns.
        columns = math.prod(shape[1:]) if len(shape) > 1 else 512
        bucket = self.bucket or max(1, columns)
        return _words("onebit", bucket, self.error_feedback)


@dataclass(frozen=True)
class Half(Compression):
    """float16 both ways, rounded to nearest; beyond its range the largest that it has."""

    name: ClassVar[str] = "fp16"

    error_feedback: bool = _flag(
        False, "add what rounding left out to the next round, on workers and servers"
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        return _words("fp16", self.error_feedback)


@dataclass(frozen=True)
class TwoBit(Compression):
    """MXNet's own compression, with its numbers: three values an element, the rest is carried over.

    An element of the gradient and what was left of it in earlier rounds travels as `threshold`, its
    negative or zero, whichever it reaches; what is left stays for the next round. The answer is not
    compressed. For float32 only.
    """

    name: ClassVar[str] = "2bit"
    prefers_workers: ClassVar[bool] = False

    threshold: float = _number(
        0.5,
        0,
        math.inf,
        "far above the gradients' size nothing is sent for long, far below much is left behind",
        above=True,
    )

    def specification(self, shape: Tuple[int, ...]) -> str:
        return _words("2bit", self.threshold)


TYPES: Dict[str, Type[Compression]] = {
    kind.name: kind for kind in (TernGrad, QSGD, DGC, OneBit, Half, TwoBit)
}


def parse(parameters: Dict[str, Any]) -> Compression:
    """A compression from MXNet's form: {'type': 'terngrad', 'clip_sigma': 2.5}.

    Raises
    ------
    OptionError
        For an unknown type, an option that does not exist, or a value out of range.
    """
    options = dict(parameters)
    kind = options.pop("type", None)
    if kind not in TYPES:
        raise OptionError(
            f"compression type is {kind!r}; it must be one of {', '.join(map(repr, TYPES))}"
        )
    known = {option.name: option for option in fields(TYPES[kind])}
    for name, value in options.items():
        if name not in known:
            raise OptionError(
                f"compression {kind} has no option {name!r}; its options are {', '.join(known)}"
            )
        options[name] = _converted(known[name], value)
    return TYPES[kind](**options)


def option_names() -> List[str]:
    """The options of all types, each once."""
    return list({option.name: None for kind in TYPES.values() for option in fields(kind)})


def describe() -> str:
    """All types with their options, defaults and what these may be, for reading."""
    lines: List[str] = []
    for name, kind in TYPES.items():
        lines += [f"{name}: {(kind.__doc__ or '').splitlines()[0]}"]
        for option in fields(kind):
            about = option.metadata
            lines.append(f"  {option.name} = {option.default!r}  ({about['allowed']})")
            lines.append(f"      {about['why']}")
        lines.append("")
    return "\n".join(lines)


def _converted(option: Field, value: Any) -> Any:
    """The value as the option's type, where MXNet would take it: numbers also as text."""
    kind = option.metadata["kind"]
    if kind is tuple and isinstance(value, (list, tuple)):
        return tuple(value)
    if kind in (int, float) and isinstance(value, str):
        try:
            return kind(value)
        except ValueError:
            return value  # which _check refuses
    return float(value) if kind is float and type(value) is int else value


def _check(name: str, option: Field, value: Any) -> None:
    kind, allowed = option.metadata["kind"], option.metadata["allowed"]
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if right and kind is float:
        right = np.isfinite(np.float32(value)) and (value == 0 or np.float32(value) != 0)
    if kind is tuple and right:
        right = all(type(element) in (int, str) for element in value)
    if not right or not option.metadata["fits"](value):
        raise OptionError(
            f"{name}: {option.name} is {value!r}; it must be {allowed}"
            + (", in float32" if kind is float else "")
        )


def _words(name: str, *values: Any) -> str:
    numbers = [repr(int(value) if isinstance(value, bool) else value) for value in values]
    return " ".join([name, *numbers])
