"""signSGD: one bit an element both ways (csrc/codecs/sign_sgd.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .method import GradientCompression
from .options import number


@dataclass(frozen=True)
class SignSGD(GradientCompression):
    """The sign of each element, and back the majority's (signSGD: Bernstein et al., ICML 2018).

    Workers send the signs of their gradients, and the servers answer with the sign that most of
    them sent (majority vote, the subject of their second paper, ICLR 2019, whose workers vote with
    their momentum; here an optimizer's momentum is of the votes). What a worker gets as a
    sum is `scale` or its negative, whatever the gradients' size: the papers' 1 unless the script
    says otherwise. An optimizer divides it by the batch as it does any sum, so that with
    Trainer.step(n) the papers' step, which is the learning rate, takes a `scale` of n. The
    optimizer runs on the workers, for only they see the vote.

    A zero has either sign with the same probability, and so has a tie of the workers: always the
    same sign would move parameters that have no gradient one way, and with an even number of
    workers all of them.
    """

    name: ClassVar[str] = "signsgd"
    updates_on_workers: ClassVar[bool] = True

    scale: float = number(1.0, "what a majority's sign is worth; 1 is the papers'")
    seed: int = number(0, "of the random numbers for zeros and ties; equal on all workers")
