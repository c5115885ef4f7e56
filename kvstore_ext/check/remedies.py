"""What to do where a host, or a port on it, cannot be reached."""
from __future__ import annotations

import re

from ..launcher.network import PORTS

_STARTS = (
    (r"Permission denied", "let ssh log in without a password: ssh-copy-id {host}"),
    (r"[Hh]ost key verification failed", "log in once, to accept the host's key: ssh {host}"),
    (r"Could not resolve|Name or service not known", "mend its name in the hostfile or in DNS"),
    (r"Connection refused", "start sshd there, or write its port in the hostfile: NAME:PORT"),
    (r"timed out|No route to host|did not start within", "switch it on, or let ssh through to it"),
    (r"can't open file", "install kvstore_ext there at the same path as here"),
    (r"could not be started: No such file", "make the working directory there as well"),
    (
        r"No such file or directory|not found|status 127",
        "install the environment there at the same path as here, or name the interpreter that all "
        "hosts have by --python",
    ),
    (r"no network interface", "name a network that all hosts have by --interface"),
    (r"cannot listen at", f"let processes there listen on TCP ports {PORTS[0]} to {PORTS[-1]}"),
)

_PAIRS = {
    "silent": "a firewall drops it: let TCP ports {first} to {last} through from {origin} to "
    "{target}, or choose another network by --interface",
    "refused": "a firewall refuses it, or that address is another machine's: let TCP ports {first} "
    "to {last} through to {target}, or choose another network by --interface",
    "unreachable": "{origin} and {target} share no network there: choose one by --interface",
    "unknown": "another machine or a proxy has that address: choose another network by --interface",
    "lossy": "large packets are lost: make the MTU the same on {origin} and {target}, and no "
    "larger than what lies between them carries",
    "listen": "let processes on {target} listen on TCP ports {first} to {last}",
}


def remedy_for_start(host: str, error: str, status: int = 0) -> str:
    """What to do where no probe could be started on a host."""
    for pattern, remedy in _STARTS:
        if re.search(pattern, f"{error} (status {status})"):
            return remedy.format(host=host)
    if "; try: " in error:
        return "run the command above by hand, and see what it says"
    # By mpirun or srun it is "node1 (0)", or "host 0" where it is not known which host that is.
    by_hand = f"try: ssh {host} true" if " " not in host else "have mpirun or srun run `true` there"
    return f"see that host's own log, or {by_hand}"


def remedy_for_pair(kind: str, origin: str, target: str) -> str:
    """What to do where one host does not reach another; `kind` is the probe's."""
    return _PAIRS[kind].format(origin=origin, target=target, first=PORTS[0], last=PORTS[-1])
