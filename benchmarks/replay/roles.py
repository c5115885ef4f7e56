"""What the processes of a job are that do not work: servers, schedulers, Horovod's rendezvous."""
from __future__ import annotations

import os
import time
from pathlib import Path


def our_server() -> None:
    """kvstore_ext's server or scheduler, as DMLC_ROLE says."""
    from kvstore_ext.server.process import main

    main([])


def stock_server() -> None:
    """MXNet's own, as `import mxnet` makes it in a process with such a role."""
    from mxnet.kvstore import kvstore_server

    kvstore_server._init_kvstore_server_module()


def rendezvous(hosts: str, port_file: str) -> None:
    """Where Horovod's workers find each other, until it is killed; `hosts` separated by commas."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.http.http_server import RendezvousServer

    server = RendezvousServer()
    port = server.start()
    names = hosts.split(",")
    slots = parse_hosts(",".join(f"{name}:1" for name in names))
    server.init(get_host_assignments(slots, len(names)))
    # All of it or nothing, as somebody waits for it.
    part = Path(f"{port_file}.part")
    part.write_text(str(port))
    os.replace(part, port_file)
    while True:
        time.sleep(3600)
