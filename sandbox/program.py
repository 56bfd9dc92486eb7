"""The sandbox servers as one program, which `manage.py sandbox` runs.

One event loop, two listeners, one folder that it holds by a lock. It ends on SIGTERM or
SIGINT within a second; renders it started go on, and the next start finds them again.
"""

import asyncio
import errno
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from sandbox.addresses import Ports
from sandbox.folder import NoSandbox, SandboxFolder
from sandbox.mailbox import Mailbox
from sandbox.servers import http, mail, mailbox_view, pager, payments
from sandbox.servers.devices import Devices
from sandbox.servers.http import Answer, Request, Route
from sandbox.servers.renders import Renders


def run(data: Path, *, ports: Ports, say: Callable[[str], None] = print) -> None:
    """Serve on `data` until a signal comes. Raises `NoSandbox` if it cannot be had."""
    folder = SandboxFolder(data / "sandbox")
    folder.prepare()
    with only_one(folder.root):
        try:
            asyncio.run(_until_told(data, folder, ports, say))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise NoSandbox(
                f"A port of the sandbox is taken: {error.strerror}. It was not started. Name "
                "another one in the environment, or 0 for a free one."
            ) from error


@contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Hold the folder for the length of a block: two servers would not know of each other."""
    descriptor = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise NoSandbox(
            "Another sandbox program holds this folder, so this one was not started. Use the one "
            "that runs, or end it first."
        ) from None
    finally:
        os.close(descriptor)


@asynccontextmanager
async def serving(folder: SandboxFolder, ports: Ports) -> AsyncIterator[Ports]:
    """Listen for the length of a block; yield the ports that were taken."""
    renders = Renders(folder.renders)
    renders.resume()
    mailbox = Mailbox(folder.mailbox)
    smtp = await mail.listen(mailbox, ports.smtp)
    web = await http.listen(_routes(folder, mailbox, renders), ports.http)
    try:
        yield Ports(smtp=_port(smtp), http=_port(web))
    finally:
        smtp.close()
        web.close()


async def _until_told(
    data: Path, folder: SandboxFolder, ports: Ports, say: Callable[[str], None]
) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with serving(folder, ports) as taken:
        taken.announce(data)
        say(f"The sandbox listens: mail on port {taken.smtp}, HTTP on port {taken.http}.")
        await told.wait()


def _routes(folder: SandboxFolder, mailbox: Mailbox, renders: Renders) -> list[Route]:
    async def alive(_: Request) -> Answer:
        return Answer(200, {"alive": True})

    return [
        Route("GET", "/healthz", alive),
        *mailbox_view.routes(mailbox),
        *payments.routes(folder.payments),
        *renders.routes(),
        *Devices().routes(),
        *pager.routes(),
    ]


def _port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port
