"""Has this process seal what it sends, once and before ps-lite starts."""
from __future__ import annotations

from functools import lru_cache

import mxnet as mx

from .. import _core
from ..config import role_of_process
from ..descriptors import make_room_for_strangers
from ..errors import ClusterError
from ..notes import say
from .job_key import NAME, JobKey


def encrypt_member() -> None:
    """Does it to a process that is to be one of a job with a key; raises KVStoreError."""
    role = role_of_process()
    key = None if role is None else JobKey.from_environment()
    if role is not None and key is not None:
        encrypt_process(key, role)


@lru_cache(maxsize=None)
def encrypt_process(key: JobKey, role: str) -> None:
    """Seals everything that ps-lite sends from now on, MXNet's own stores' messages too, and says
    so on standard error, with the key's fingerprint.

    Raises
    ------
    ClusterError
        Where that cannot be done. The process must not join the job then.
    """
    try:
        cipher = _core.encrypt(mx.libinfo.find_lib_path()[0], key.socket_secret)
    except RuntimeError as error:
        raise ClusterError(
            f"{NAME} is set, but this {role} cannot encrypt: {error}; or start the job without a "
            "key (kvstore-launch --no-secure)"
        ) from None
    make_room_for_strangers()
    say(
        f"this {role} encrypts with the job's key {key.fingerprint} (a fingerprint), "
        f"by AES-256-GCM of {cipher}"
    )
