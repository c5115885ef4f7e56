"""A supervisor whose connection is gone can be given signs and be hung up like any other."""

from __future__ import annotations

import asyncio
import socket
import struct

from kvstore_ext.launcher.protocol import SIGN, Link

_RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: closing resets the connection


async def _hang_up_on(reset: bool) -> None:
    """Where the other side has ended its half, and perhaps all, of which nobody here has read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        reader, writer = await asyncio.open_connection(sock=near)
        far.shutdown(socket.SHUT_WR)
        assert await reader.read() == b""  # from now on the loop does not look at the socket
        if reset:
            far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        far.close()
        await asyncio.sleep(0.1)
        link = Link(reader, writer)
        link.hang_up()
        link.give(SIGN)
        link.hang_up()
        link.close()


def test_a_connection_that_the_other_side_has_ended() -> None:
    asyncio.run(_hang_up_on(reset=False))


def test_a_connection_that_is_gone() -> None:
    asyncio.run(_hang_up_on(reset=True))
