"""All checks of a store's calls, which run without a cluster and on the workers of a job."""

from __future__ import annotations

import api_checks
import compression_checks
import drop_in_checks
import sparse_checks

CHECKS = {
    **sparse_checks.CHECKS,
    **drop_in_checks.CHECKS,
    **compression_checks.CHECKS,
    **api_checks.CHECKS,  # sets optimizers on the store that all share
}
