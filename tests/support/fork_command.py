"""A command that stands for `python ARGUMENT ...`: fork_command.py SOCKET ARGUMENT ...

It has the desk at the socket, of fork_desk.py, start a fork that does the same, with this process's
environment, directory and output, and ends as that does; the fork ends with it.
"""
from __future__ import annotations

import json
import os
import socket
import sys


def main(path: str, *arguments: str) -> int:
    with socket.socket(socket.AF_UNIX) as desk:
        desk.connect(path)
        request = [os.getpid(), arguments, dict(os.environ), os.getcwd()]
        desk.sendall(json.dumps(request).encode() + b"\n")
        status = int(desk.recv(16) or 1)
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
