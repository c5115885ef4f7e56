"""The list of methods: what set_gradient_compression and mx.kv.create know, in this order."""
from __future__ import annotations

from .compression import register
from .compression.dgc import DGC
from .compression.half import Half
from .compression.one_bit import OneBit
from .compression.qsgd import QSGD
from .compression.sign_sgd import SignSGD
from .compression.terngrad import TernGrad
from .compression.two_bit import TwoBit
from .slim_dp.options import SlimDP

for _method in (
    TernGrad,
    QSGD,
    DGC,
    OneBit,
    SignSGD,
    Half,
    TwoBit,
    SlimDP,
):
    register(_method)
