"""The other end of `link`: forwards TCP between workers and PostgreSQL, and breaks it when told.

`python -m drills.link_line PORT` prints the port it listens on, then reads one order a line:

cut            close every connection now
hole S         forward nothing for S seconds, then close: what a dead network looks like
cut_commit N   the next N commits reach the server, their answers are lost (reliability, P1)
no_commit N    the next N commits are lost on their way, with their connection
whole          lose nothing more
"""

import asyncio
import sys

HOST = "127.0.0.1"
COMMIT = b"COMMIT"


class Orders:
    """What is to be done to the connections, and which ones there are."""

    def __init__(self) -> None:
        self.pairs: set[Client] = set()
        self.cut_commits = 0
        self.lost_commits = 0
        self.in_a_hole = False

    async def obey(self, line: str) -> None:
        """Carry out one order."""
        word, _, amount = line.strip().partition(" ")
        match word:
            case "cut":
                self._close_all()
            case "hole":
                await self._hole(float(amount))
            case "cut_commit":
                self.cut_commits += int(amount)
            case "no_commit":
                self.lost_commits += int(amount)
            case "whole":
                self.lost_commits = self.cut_commits = 0

    async def _hole(self, seconds: float) -> None:
        self.in_a_hole = True
        for pair in self.pairs:
            pair.hold()
        await asyncio.sleep(seconds)
        self.in_a_hole = False
        self._close_all()

    def _close_all(self) -> None:
        for pair in list(self.pairs):
            pair.cut()


class Client(asyncio.Protocol):
    """A worker's connection, and the one to the server that belongs to it."""

    def __init__(self, orders: Orders, server_port: int) -> None:
        self._orders, self._server_port = orders, server_port
        self._server: asyncio.Transport | None = None
        self._waiting: list[bytes] = []
        self._answers_are_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 for the type checker
        self._client = transport
        self._orders.pairs.add(self)
        self._task = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(
                lambda: Server(self), HOST, self._server_port
            )
        except OSError:
            self.cut()
            return
        self._server = transport
        if self._orders.in_a_hole:
            self.hold()
        for data in self._waiting:
            transport.write(data)

    def data_received(self, data: bytes) -> None:
        if COMMIT in data:
            if self._orders.lost_commits:
                self._orders.lost_commits -= 1
                self.cut()
                return
            if self._orders.cut_commits:
                self._orders.cut_commits -= 1
                self._answers_are_lost = True
        if self._server is None:
            self._waiting.append(data)
        else:
            self._server.write(data)

    def answered(self, data: bytes) -> None:
        """Pass on what the server said, unless this answer is to be lost."""
        if self._answers_are_lost:
            self.cut()
            return
        self._client.write(data)

    def hold(self) -> None:
        """Read nothing more, on either side."""
        for side in (self._client, self._server):
            if side is not None and not side.is_closing():
                side.pause_reading()

    def cut(self) -> None:
        """Reset both sides."""
        for side in (self._client, self._server):
            if side is not None:
                side.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._orders.pairs.discard(self)
        if self._server is not None:
            self._server.close()


class Server(asyncio.Protocol):
    """The server's side of one connection."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.answered(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.cut()


async def serve(server_port: int) -> None:
    """Forward until the drill closes the line."""
    loop = asyncio.get_running_loop()
    orders = Orders()
    listener = await loop.create_server(lambda: Client(orders, server_port), HOST, 0)
    print(listener.sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        await orders.obey(line.decode())
    listener.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
