"""A closed loop of HTTP clients on bare sockets, so that the client's own cost stays small."""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Load:
    """What a loop measured: seconds of the whole, and each call's latency in seconds."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def calls_per_s(self) -> float:
        return len(self.latencies) / self.seconds

    def figures(self) -> dict[str, float]:
        """Calls a second, p50 and p99 in milliseconds, and how many did not succeed."""
        return {
            "calls": len(self.latencies),
            "calls_per_s": round(self.calls_per_s, 1),
            "p50_ms": round(self.quantile_ms(0.5), 2),
            "p99_ms": round(self.quantile_ms(0.99), 2),
            "refused": self.refused,
        }

    def quantile_ms(self, share: float) -> float:
        """A quantile of the latencies, in milliseconds."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def _client(host: str, port: int, request: bytes, left: list[int], load: Load) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    while left[0] > 0:
        left[0] -= 1
        began = time.perf_counter()
        writer.write(request)
        ok = await _answered(reader)
        load.latencies.append(time.perf_counter() - began)
        load.refused += not ok
    writer.close()


async def _answered(reader: asyncio.StreamReader) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    lowered = head.lower()
    if b"chunked" in lowered:
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        length = int(lowered.split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
    return b'"succeeded"' in body


async def closed_loop(
    *, host: str, port: int, key: str, body: bytes, calls: int, in_flight: int
) -> Load:
    """Make `calls` calls, `in_flight` at a time, each answered with its result."""
    request = (
        f"POST /api/v1/calls?wait=25 HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    load, left = Load(), [calls]
    began = time.perf_counter()
    await asyncio.gather(*(_client(host, port, request, left, load) for _ in range(in_flight)))
    load.seconds = time.perf_counter() - began
    return load


async def clearhouse(host: str, port: int, key: str, calls: int, in_flight: int) -> Load:
    """The loop with the no-op tool, after a short warm-up."""
    body = b'{"tool":"sandbox.tally","arguments":{}}'
    await closed_loop(host=host, port=port, key=key, body=body, calls=50, in_flight=4)
    return await closed_loop(
        host=host, port=port, key=key, body=body, calls=calls, in_flight=in_flight
    )


if __name__ == "__main__":
    address, secret, count, width = sys.argv[1:5]
    name, _, number = address.partition(":")
    measured = asyncio.run(clearhouse(name, int(number), secret, int(count), int(width)))
    print(json.dumps(measured.figures()))
