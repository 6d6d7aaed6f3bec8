"""Many calls over one client: what they leave behind does not grow with them (B220)."""

from __future__ import annotations

import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from tests.calls import CONTEXT, model, text
from tests.server import Server, answer

from sseam import AsyncClient, Client

CALLS = 1_000
# What is alive for other reasons varies, in a process that has run other tests by hundreds. One object a call would
# be 900.
SLACK = 600
# Of what a call is made of nothing varies.
OURS = ("sseam", "httpx", "httpx2", "httpcore", "httpcore2", "h11")


def counted(server: Server) -> tuple[int, int, int]:
    server.requests.clear()
    gc.collect()
    alive = gc.get_objects()
    ours = sum(type(one).__module__.partition(".")[0] in OURS for one in alive)
    return len(alive), ours, threading.active_count()


def check(counts: list[tuple[int, int, int]]) -> None:
    (objects, ours, threads), (objects_then, ours_then, threads_then) = counts
    assert objects_then - objects < SLACK
    assert ours_then <= ours
    assert threads_then <= threads


async def read(client: AsyncClient, url: str, number: int) -> None:
    """To the end, aborted, or cancelled, in turn."""
    stream = client.stream(model(url), CONTEXT)
    match number % 3:
        case 0:
            assert (await stream.message()).text == "x"
        case 1:
            async for _ in stream:
                break
            stream.abort()
            await stream.aclose()
        case _:
            with anyio.CancelScope() as scope:
                async for _ in stream:
                    scope.cancel()
            await stream.aclose()


@pytest.mark.parametrize(("backend", "library"), [("asyncio", httpx2), ("trio", httpx)])
def test_b220_a_thousand_calls_leave_no_more_than_a_hundred(backend: str, library: Any) -> None:
    async def main(server: Server) -> list[tuple[int, int, int]]:
        async with library.AsyncClient() as http:
            client = AsyncClient(http)
            return await rounds(server, lambda number: read(client, server.url, number))

    with Server(answer(*text("x"))) as server:
        check(anyio.run(main, server, backend=backend))


async def rounds(server: Server, one: Callable[[int], Awaitable[None]]) -> list[tuple[int, int, int]]:
    counts: list[tuple[int, int, int]] = []
    for number in range(CALLS):
        await one(number)
        if number + 1 in (100, CALLS):
            await anyio.sleep(0.1)  # for what closes in the background
            counts.append(counted(server))
    return counts


def test_b220_the_same_without_a_loop() -> None:
    counts: list[tuple[int, int, int]] = []
    with Server(answer(*text("x"))) as server, httpx.Client() as http:
        client = Client(http)
        for number in range(CALLS):
            stream = client.stream(model(server.url), CONTEXT)
            if number % 2:
                assert stream.message().text == "x"
            else:
                for _ in stream:
                    break
                stream.abort()
                stream.close()
            if number + 1 in (100, CALLS):
                counts.append(counted(server))
    check(counts)
