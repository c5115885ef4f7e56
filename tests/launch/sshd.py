"""A private OpenSSH server on the loopback, where every address is a host, or in namespaces."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Iterator, Sequence

from benchmarks.cluster import Host
from tests.support.cluster import free_port
from tests.support.system_packages import need

HOSTS = ("127.0.0.1", "127.0.0.2")

# SetEnv marks also the processes that are there before the launcher has said anything, and keeps
# the tests out of the user's home, where a login may do anything, slowly and under a lock.
SERVER = """
Port {port}
{listen}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
SetEnv KVSTORE_EXT_TEST_MARK={mark} REMOTE=yes HOME={directory}
"""

CLIENT = """
Host *
  IdentityFile {directory}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {directory}/known_hosts
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""


class Sshd:
    """`port` is the server's on all hosts, `config` the client's configuration file.

    It listens at `addresses`, by which it is reached unless they are 0.0.0.0.
    """

    def __init__(self, directory: Path, mark: str, addresses: Sequence[str] = HOSTS) -> None:
        _, self._sshd = need("ssh", "sshd")  # with ssh comes ssh-keygen
        self.directory = directory
        self.addresses = addresses
        self.port = free_port()
        self.config = directory / "ssh_config"
        for key in ("host_key", "user_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / key)]
            subprocess.run(command, check=True)
        self.config.write_text(CLIENT.format(directory=directory))
        listen = "\n".join(f"ListenAddress {address}" for address in addresses)
        server = SERVER.format(port=self.port, listen=listen, directory=directory, mark=mark)
        (directory / "sshd_config").write_text(server)

    def serve(self, within: Sequence[str] = ()) -> Iterator[Sshd]:
        """Yields itself while the server listens; `within` is what its command begins with."""
        if os.geteuid() == 0:
            # Where sshd, when root starts it, locks itself in until a user has logged in.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command = [*within, self._sshd, "-D", "-e", "-f", str(self.directory / "sshd_config")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, universal_newlines=True) as server:
            assert server.stderr is not None
            try:
                for _ in self.addresses:
                    line = server.stderr.readline()
                    assert "Server listening" in line, line + server.stderr.read()
                yield self
            finally:
                server.kill()

    @contextlib.contextmanager
    def serve_on(self, hosts: Sequence[Host]) -> Iterator[None]:
        """It listens on each of these hosts."""
        with contextlib.ExitStack() as stack:
            for host in hosts:
                stack.enter_context(contextlib.contextmanager(self.serve)(host.within))
            yield

    def hostfile(self, hosts: Sequence[str] = HOSTS) -> str:
        path = self.directory / "hosts"
        path.write_text("".join(f"{host}:{self.port}\n" for host in hosts))
        return str(path)
