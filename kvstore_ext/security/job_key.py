"""The key of a job: the only reader of KVSTORE_EXT_JOB_KEY."""
from __future__ import annotations

import hmac
import os
import re
from dataclasses import dataclass, field
from typing import Optional

from ..errors import OptionError

NAME = "KVSTORE_EXT_JOB_KEY"
BYTES = 32


@dataclass(frozen=True)
class JobKey:
    """A secret of 32 bytes that all processes of a job have, and nobody else.

    What is used is derived from it by HMAC-SHA256 (RFC 2104), each for one purpose.
    """

    secret: bytes = field(repr=False)

    @classmethod
    def from_environment(cls) -> Optional[JobKey]:
        """The job's key, or None where it has none and all is said in the open.

        Raises
        ------
        OptionError
            For a key that is malformed, without repeating it.
        """
        text = os.environ.get(NAME)
        if text is None:
            return None
        if not re.fullmatch(f"[0-9a-fA-F]{{{2 * BYTES}}}", text):
            raise OptionError(
                f"{NAME} has {len(text)} characters, or others than hexadecimal digits; it must be "
                f"{2 * BYTES} hexadecimal digits, as python -c 'import secrets; "
                f"print(secrets.token_hex({BYTES}))' makes them"
            )
        return cls(bytes.fromhex(text))

    @property
    def socket_secret(self) -> bytes:
        """32 bytes: the secret key of all sockets that others connect to (CURVE, RFC 26)."""
        return self._derived("sockets")

    @property
    def fingerprint(self) -> str:
        """8 hexadecimal digits by which people compare keys; the key cannot be found from them."""
        return self._derived("fingerprint").hex()[:8]

    def _derived(self, purpose: str) -> bytes:
        return hmac.new(self.secret, f"kvstore_ext job key: {purpose}".encode(), "sha256").digest()
