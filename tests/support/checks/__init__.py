"""All checks of a store's calls, which run without a cluster and on the workers of a job."""

from __future__ import annotations

from tests.support.checks import calls as api_checks
from tests.support.checks import compression as compression_checks
from tests.support.checks import drop_in as drop_in_checks
from tests.support.checks import sparse as sparse_checks

CHECKS = {
    **sparse_checks.CHECKS,
    **drop_in_checks.CHECKS,
    **compression_checks.CHECKS,
    **api_checks.CHECKS,  # sets optimizers on the store that all share
}
