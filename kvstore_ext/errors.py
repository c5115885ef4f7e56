"""What kvstore_ext raises: MXNetErrors too, so that scripts which catch those keep working."""
from __future__ import annotations

import contextlib
from typing import Callable, Iterator

from mxnet.base import MXNetError


class KVStoreError(MXNetError):
    """Something went wrong in a store of kvstore_ext; the base of the others."""


class OptionError(KVStoreError, ValueError):
    """An option, or the environment that should hold it, is malformed or out of range."""


class KeyNotInitialised(KVStoreError, KeyError):  # noqa: N818 - the user's words, not ours
    """A key was used before `init` or `broadcast` gave it a value."""

    def __str__(self) -> str:  # KeyError's would quote the message
        return str(self.args[0])


class ArrayMismatch(KVStoreError, ValueError):  # noqa: N818
    """An array's shape, type or storage is not that of its key."""


class ClusterError(KVStoreError, RuntimeError):
    """The job cannot go on: a process is missing, failed, or disagrees with the others."""


@contextlib.contextmanager
def of_job(failure: Callable[[], str]) -> Iterator[None]:
    """Has a wait for MXNet's operations raise ClusterError where the job has failed meanwhile, for
    the reason that `failure` returns; any other error stays as it is."""
    try:
        yield
    except MXNetError as error:
        reason = failure()
        if reason and not isinstance(error, KVStoreError):
            raise ClusterError(reason) from None
        raise
