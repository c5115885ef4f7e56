"""A launcher and its tasks know each other, and nobody else can be either."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from kvstore_ext.launcher import far_ends, network, orders, output, proof
from kvstore_ext.launcher.agent import connect
from kvstore_ext.launcher.protocol import encode

from .jobs import Job

TOKEN = "0123456789abcdef"
Answer = Callable[[bytes], bytes]


@contextlib.contextmanager
def listener(answer: Answer) -> Iterator[tuple[str, list[bytes]]]:
    """Somebody who answers each line of whoever connects; what has come there."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection = server.accept()[0]
                with connection, connection.makefile("rb") as lines:
                    for line in lines:
                        heard.append(line)
                        connection.sendall(answer(line))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", heard
    thread.join(10)


@contextlib.contextmanager
def launcher(token: str) -> Iterator[tuple[str, list[Any]]]:
    """A launcher's port, and whom it has recognised there: numbers, or why not."""
    found: list[Any] = []
    loop = asyncio.new_event_loop()

    async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            found.append((await proof.recognise(reader, writer, token)).number)
        except Exception as error:
            found.append(type(error))
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(welcome, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", found
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def run_order(line: bytes) -> bytes:
    """What an impostor would have a task do."""
    return json.dumps({"run": {"command": ["touch", "/tmp/here"]}}).encode() + b"\n"


def forged(line: bytes) -> bytes:
    """The answer of somebody who knows all but the token."""
    hello = json.loads(line)
    known = proof._proof("", "launcher", hello["number"], hello["nonce"], "n")
    return json.dumps({"nonce": "n", "proof": known}).encode() + b"\n"


@pytest.mark.parametrize(
    "answer",
    [
        run_order,
        forged,
        lambda line: line,
        lambda line: b"[]\n",
        lambda line: b"[" * 900 + b"\n",
        lambda line: b"x" * 10000,
        lambda line: b'{"nonce": 1, "proof": 2}\n',
        lambda line: b"\xff\n",
    ],
)
def test_a_task_does_not_obey_an_impostor_and_goes_on_to_its_launcher(answer: Answer) -> None:
    with listener(answer) as (first, heard), launcher(TOKEN) as (second, found):
        with connect([first, second], 3, TOKEN)[0] as connection:
            assert connection.getpeername()[1] == int(second.partition(":")[2])
            assert connection.recv(1) == b""  # this launcher says no more
        assert found == [3]
    assert heard
    assert not any(TOKEN.encode() in line for line in heard)


def test_a_task_without_a_launcher_says_why() -> None:
    says = pytest.raises(ValueError, match=r"none of .*it does not know the job's token")
    with listener(forged) as (only, _), says:
        connect([only], 3, TOKEN)


@pytest.mark.parametrize(
    "lines",
    [
        b'{"token": "0123456789abcdef", "number": 0}\n',
        b'{"number": 0, "nonce": "n"}\n{"proof": "n"}\n',
        b'{"number": 0, "nonce": "n"}\n{"proof": 3}\n',
        b'{"number": 0, "nonce": "n"}\n{"proof": "\xc3\xa9"}\n',
        b'{"number": 1e999, "nonce": "n"}\n',
        b'{"nonce": "n"}\n',
        b"[]\n",
        b"[" * 60000 + b"\n",
        b"x" * 100000 + b"\n",
        b"\xff\n",
        b"",
    ],
    ids=lambda lines: lines[:40].decode(errors="replace"),
)
def test_a_launcher_turns_strangers_away(lines: bytes) -> None:
    with launcher(TOKEN) as (address, found):
        host, _, port = address.partition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(lines)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(1000):
                pass
        with connect([address], 5, TOKEN)[0] as connection:
            assert connection.recv(1) == b""  # once it is recognised
        assert issubclass(found[0], (ValueError, OSError))
        assert found[1] == 5


def test_what_a_launcher_proves_is_no_proof_of_a_task() -> None:
    with launcher(TOKEN) as (address, found):
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port))) as connection:
            lines = connection.makefile("rwb", buffering=0)
            lines.write(b'{"number": 0, "nonce": "n"}\n')
            lines.write(json.dumps({"proof": json.loads(lines.readline())["proof"]}).encode())
            lines.write(b"\n")
            assert lines.readline() == b""
        assert found == [ValueError]


def test_bridges_are_no_addresses_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"lo": "127.0.0.1", "docker0": "172.17.0.1", "net0": "192.0.2.5"}
    monkeypatch.setattr(network, "interface_addresses", lambda: addresses)
    monkeypatch.setattr(network, "is_bridge", lambda name: name == "docker0")
    found = network.outward_addresses()
    assert "172.17.0.1" not in found
    assert found[-1] == "192.0.2.5"


def test_a_log_does_not_follow_a_link(job: Job) -> None:
    victim = job.directory / "victim"
    victim.write_text("as it was")
    job.log_dir.mkdir()
    (job.log_dir / "worker-0.log").symlink_to(victim)
    os.link(victim, job.log_dir / "server-0.log")
    assert job.run("-n", "1", "--server-command", "echo serving", "echo", "hello") == 0, job.errors
    assert victim.read_text() == "as it was"
    assert job.log("worker-0") == "hello\n"
    assert job.log("server-0") == "serving\n"


def test_another_users_link_is_no_log_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "logs"
    link.symlink_to(tmp_path)
    output.make_log_directory(str(link))
    if os.getuid() == 0:  # whose own links are taken
        os.lchown(link, 4321, -1)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for place in (link, link / "20260101-000000-7" / "deeper"):
        with pytest.raises(PermissionError, match="another user") as refused:
            output.make_log_directory(str(place))
        assert refused.value.filename == str(link)
    assert not (tmp_path / "20260101-000000-7").exists()


def test_both_ends_agree_on_the_key_of_orders() -> None:
    async def meet() -> tuple[str, str]:
        server_end: asyncio.Future[proof.Task] = asyncio.get_running_loop().create_future()

        async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server_end.set_result(await proof.recognise(reader, writer, TOKEN))
            writer.close()

        server = await asyncio.start_server(welcome, "127.0.0.1", 0)
        address = "{}:{}".format(*server.sockets[0].getsockname())
        meeting = asyncio.get_running_loop().run_in_executor(None, connect, [address], 3, TOKEN)
        connection, key = await meeting
        connection.close()
        server.close()
        return key, (await server_end).key

    own, other = asyncio.run(meet())
    assert own == other


RESERVE = {
    "reserve": {"address": "127.0.0.1", "interface": None, "towards": None, "port": 0,
                "share": 0, "shares": 1},
}  # fmt: skip


@pytest.mark.parametrize("key", ["", "key"], ids=["without proofs", "with proofs"])
def test_what_is_no_order_is_answered_and_ends_nothing(key: str) -> None:
    command = [sys.executable, "-S", far_ends.ENTRY, "--supervise"]
    environment = {**os.environ, **({orders.NAME: key} if key else {})}
    garbage = [b"no json\n", b"[]\n", b"3\n", b"\xff\n", b"[" * 20000 + b"\n"]
    # What is refused before its proof is looked at has no number.
    right = encode(orders.Orders(key).prove(RESERVE) if key else RESERVE)
    done = subprocess.run(
        command, input=b"".join(garbage) + right, env=environment, capture_output=True
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout.count(b'"error"') == len(garbage)
    assert b'"reserved"' in done.stdout


def test_who_hands_on_the_proofs_can_give_no_order(tmp_path: Path) -> None:
    """Nor an order again, nor one of another number."""
    command = [sys.executable, "-S", far_ends.ENTRY, "--supervise"]
    environment = {**os.environ, orders.NAME: "key"}
    run = {"command": ["touch", str(tmp_path / "here")], "environment": {}, "directory": "/"}
    first = orders.Orders("key").prove(RESERVE)
    proofs = orders.Orders("key")
    proofs.prove({})
    later = proofs.prove({"run": run})
    for forged in (
        [{"run": run}],
        [orders.Orders("another").prove({"run": run})],
        [{**later, "run": {**run, "command": ["touch", str(tmp_path / "there")]}}],
        [later],
        [first, first],
    ):
        said = b"".join(encode(order) for order in forged)
        done = subprocess.run(command, input=said, env=environment, capture_output=True)
        assert b"this order is not the launcher's" in done.stdout
        assert list(tmp_path.iterdir()) == []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as obeying:
        assert obeying.stdin is not None
        assert obeying.stdout is not None
        obeying.stdin.write(encode(first) + encode(later))
        obeying.stdin.flush()  # its end would end the process
        assert any(b'"ended"' in line for line in obeying.stdout)
    assert (tmp_path / "here").exists()
