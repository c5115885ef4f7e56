"""The secret that the processes of a job share, by which they keep strangers out, unless all of
them are on one host or --no-secure says that they have none.

It is on no command line, and this project sends it nowhere in the open. Where the launcher has a
pipe to each process's supervisor, through ssh too, the key goes that way. Tasks of mpirun and srun
speak to the launcher over connections that anybody in the network may read; they and the launcher
each derive the key from the job's token, which they need for proof.py anyway and never say. Open
MPI and Slurm bring it to the hosts, as they do variables of the environment: whoever reads that has
it.
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import Mapping

NAME = "KVSTORE_EXT_JOB_KEY"
_BYTES = 32
_PIPED = ("local", "ssh")


def given_key(environment: Mapping[str, str], launcher: str) -> str | None:
    """Returns the key that the user has chosen; raises ValueError for one that cannot be used."""
    key = environment.get(NAME)
    if key is None:
        return None
    if not re.fullmatch(f"[0-9a-fA-F]{{{2 * _BYTES}}}", key):
        raise ValueError(f"{NAME} must be {2 * _BYTES} hexadecimal digits; --secure makes a key")
    if launcher not in _PIPED:
        raise ValueError(
            f"{NAME} is set; with --launcher {launcher} the launcher makes the key: unset it"
        )
    return key


def is_secure(asked: bool | None, launcher: str, key: str | None, own_servers: bool) -> bool:
    """Returns whether the processes of a job get a key.

    `asked` is True for --secure, False for --no-secure and None for neither; `key` is the user's
    own. Raises ValueError where the answer would be a guess: nothing is sent in the open, nor by
    only some of the processes, unless somebody has said so.
    """
    if asked is False and key is not None:
        raise ValueError(f"--no-secure: {NAME} is set; unset it, or leave --no-secure out")
    if asked is not None:
        return asked
    if launcher != "local" and key is None and not own_servers:
        raise ValueError(
            "--server-command: say --no-secure for servers of MXNet's own, which cannot encrypt, "
            "or --secure for those of kvstore_ext"
        )
    return launcher != "local" or key is not None


def key_variable(launcher: str, key: str | None) -> dict[str, str]:
    """Returns the variable for the processes of a secure job, with the key given or a new one.

    There is none where the tasks derive it.
    """
    return {NAME: key or secrets.token_hex(_BYTES)} if launcher in _PIPED else {}


def key_of_tasks(token: str) -> str:
    """Returns the key of a job that has this token."""
    return hmac.new(token.encode(), b"kvstore_ext: the job's key", "sha256").hexdigest()
