"""On each host of a check: does what its input asks for, until that ends.

A request is a line of JSON, {"do": NAME, ...}; its answer is a line that begins with MARK, as
libraries and the interpreter may write lines of their own beside them.

    check                           the findings and traits of this host
    time                            this host's clock, in seconds
    listen  address, port, token    others can measure the way here from now on
    measure address, port, token    the way to a host that listens
"""
from __future__ import annotations

import json
import socket
import sys
import time
from dataclasses import asdict
from typing import Any, Callable, Dict

from .host import check_host
from .pair import DataLostError, Listener, PeerError, measure

MARK = "kvstore_ext check: "

Answer = Dict[str, Any]


def main() -> int:
    """Returns 0 when the input has ended: with it, this process and its listener end."""
    # The coordinator says nothing before: see the launcher's Running.run.
    _say({"host": socket.gethostname()})
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("do")
        _say(_REQUESTS[name](**request))
    return 0


def check() -> Answer:
    """Returns the findings about this host."""
    return asdict(check_host(socket.gethostname()))


def tell_time() -> Answer:
    """Returns what this host's clock says, in seconds since 1970."""
    return {"time": time.time()}


def listen(address: str, port: int, token: str) -> Answer:
    """Has peers that know the token (in hexadecimal) measure the way to this port."""
    try:
        Listener(address, port, bytes.fromhex(token))
    except OSError as error:
        return {"error": str(error), "kind": "listen"}
    return {}


def measure_to(address: str, port: int, token: str) -> Answer:
    """Returns the round trip to a host that listens and the bandwidth, or what is in the way."""
    try:
        return asdict(measure(address, port, bytes.fromhex(token)))
    except PeerError as error:
        return {"error": str(error), "kind": "unknown"}
    except DataLostError as error:
        return {"error": str(error), "kind": "lossy"}
    except socket.timeout:
        return {"error": f"no answer from {address}:{port}", "kind": "silent"}
    except ConnectionRefusedError:
        return {"error": f"{address}:{port} refuses connections", "kind": "refused"}
    except OSError as error:
        return {"error": f"{address}:{port}: {error.strerror or error}", "kind": "unreachable"}


def _say(answer: Answer) -> None:
    print(f"{MARK}{json.dumps(answer)}", flush=True)


_REQUESTS: Dict[str, Callable[..., Answer]] = {
    "check": check,
    "time": tell_time,
    "listen": listen,
    "measure": measure_to,
}
