"""What reading a stream costs on top of draining the same response: CPU of the client's process, over loopback.

A server in a process of its own sends one event a chunk. The two ways to read it take turns: the bytes
drained through an `httpx` client, and `sseam`'s client on the same `httpx` client, events iterated and
the message taken. "paced" is one event every 500 us, so that each read brings one, as services send;
"concurrent" is many streams in one event loop, each with an event every 20 ms; "at once" is everything
the server can write.

    python benchmarks/overhead.py [--quick] [--check] [--library httpx2] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workloads import build

from sseam import AsyncClient, Client
from sseam.context import Context, UserMessage
from sseam.models import anthropic

TARGET = 1.15
CONTEXT = Context(messages=(UserMessage("x"),))


def serve(port: Any, events: list[bytes]) -> None:
    """Answer every POST with the events; the path begins with the microseconds between them."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(size)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                pace = int(head.split(b"/")[1]) / 1e6
                due = time.perf_counter()
                for event in events:
                    writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                    if pace:
                        due += pace
                        await asyncio.sleep(max(0.0, due - time.perf_counter()))
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextlib.contextmanager
def serving(events: list[bytes]) -> Iterator[int]:
    """The port of a server in another process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, events), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


Reader = Callable[[], object]


def sync_readers(library: Any, url: str) -> tuple[Reader, Reader]:
    http = library.Client(timeout=60, limits=library.Limits(max_connections=None))
    client, model = Client(http), anthropic("m", base_url=url, keys=())

    def drain() -> None:
        with http.stream("POST", f"{url}/v1/messages", content=b"{}") as response:
            for _ in response.iter_raw():
                pass

    def read() -> None:
        with client.stream(model, CONTEXT) as stream:
            for _ in stream:
                pass
            assert stream.message().complete

    return drain, read


def async_readers(library: Any, url: str, streams: int, loop: asyncio.Runner) -> tuple[Reader, Reader]:
    async def make() -> Any:
        return library.AsyncClient(timeout=60, limits=library.Limits(max_connections=None))

    http = loop.run(make())
    client, model = AsyncClient(http), anthropic("m", base_url=url, keys=())

    async def drain() -> None:
        async with http.stream("POST", f"{url}/v1/messages", content=b"{}") as response:
            async for _ in response.aiter_raw():
                pass

    async def read() -> None:
        async with client.stream(model, CONTEXT) as stream:
            async for _ in stream:
                pass
            assert (await stream.message()).complete

    async def all_of(one: Callable[[], Any]) -> None:
        await asyncio.gather(*(one() for _ in range(streams)))

    return (lambda: loop.run(all_of(drain))), (lambda: loop.run(all_of(read)))


def compare(readers: tuple[Reader, Reader], rounds: int, events: int) -> dict[str, float]:
    """CPU of both in us an event, and the ratio: medians over rounds in which they take turns."""
    for reader in readers:
        reader()
    pairs = [(cpu(readers[0]), cpu(readers[1])) for _ in range(rounds)]
    drained, read = (statistics.median(times) / events * 1e6 for times in zip(*pairs, strict=True))
    return {"drain": drained, "sseam": read, "ratio": statistics.median(read / drain for drain, read in pairs)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds of short streams, for a test")
    parser.add_argument("--check", action="store_true", help=f"fail when a paced ratio is above {TARGET}")
    parser.add_argument("--library", default="httpx", choices=["httpx", "httpx2"])
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    library = __import__(args.library)
    events = build("anthropic-messages", "W1", 40 if args.quick else 1_000).events
    few = build("anthropic-messages", "W1", 40 if args.quick else 200).events
    rounds, streams = (2, 5) if args.quick else (9, 200)
    figures: dict[str, dict[str, float]] = {}
    with serving(events) as port, asyncio.Runner() as loop:
        for name, pace in (("paced", 500), ("at once", 0)):
            url = f"http://127.0.0.1:{port}/{pace}"
            figures[f"{name}, sync"] = compare(sync_readers(library, url), rounds, len(events))
            figures[f"{name}, async"] = compare(async_readers(library, url, 1, loop), rounds, len(events))
    with serving(few) as port, asyncio.Runner() as loop:
        readers = async_readers(library, f"http://127.0.0.1:{port}/20000", streams, loop)
        figures[f"paced, async, {streams} concurrent"] = compare(readers, max(2, rounds // 3), len(few) * streams)
    for name, row in figures.items():
        print(f"{name:32} drain {row['drain']:7.1f} us   sseam {row['sseam']:7.1f} us   {row['ratio']:.2f}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2))
    worst = max(row["ratio"] for name, row in figures.items() if name.startswith("paced"))
    return int(args.check and worst > TARGET)


if __name__ == "__main__":
    sys.exit(main())
