"""What a store must do, call by call: functions of a store, which assert it on every worker.

Their names are what they promise; tests run them by workers/run_checks.py, and some of them without
a cluster as well. CHECKS are those of the store p3; slim_dp.py has those of the store slim_dp.
"""
from __future__ import annotations

from tests.support.checks import (
    calls,
    compression,
    drop_in,
    interfaces,
    last_layer,
    optimizers,
    sparse,
    states,
    two_bit,
    uneven,
)

CHECKS = {
    **sparse.CHECKS,
    **uneven.SPARSE,
    **interfaces.SPARSE,
    **compression.SPARSE,
    **drop_in.CHECKS,
    **states.CHECKS,
    **two_bit.CHECKS,
    **compression.CHECKS,
    **last_layer.CHECKS,
    **interfaces.CHECKS,
    **calls.CHECKS,
    **optimizers.CHECKS,
    **uneven.CHECKS,
}
