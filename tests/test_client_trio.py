"""Streams that are dropped as their trio run ends: nothing is raised there, warned of, or left open."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
import trio
from tests.calls import CONTEXT, begin, delta, model, text_start
from tests.server import End, Server, answer

import sseam
from sseam import AsyncClient


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answer(begin(), text_start(), delta("a"), End.HANG)) as running:
        yield running


async def break_off(stream: sseam.AsyncStream) -> None:
    async for _ in stream:
        break


async def abort(stream: sseam.AsyncStream) -> None:
    async for _ in stream:
        stream.abort()
        break


async def raise_in_loop(stream: sseam.AsyncStream) -> None:
    async for _ in stream:
        raise ZeroDivisionError


async def through_model_events(stream: sseam.AsyncStream) -> None:
    async for _ in sseam.model_events(stream):
        break


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("closing", [True, False], ids=["client closed", "client left"])
@pytest.mark.parametrize("leave", [break_off, abort, raise_in_loop, through_model_events])
@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_a_stream_that_is_let_go_of_at_the_end_of_a_run(
    library: Any, leave: Any, closing: bool, server: Server
) -> None:
    """The last reference is that of the main function's frame."""

    async def main() -> None:
        http = library.AsyncClient()
        stream = AsyncClient(http).stream(model(server.url), CONTEXT)
        try:
            await leave(stream)
        except ZeroDivisionError:
            pass
        finally:
            if closing:
                await http.aclose()

    for _ in range(3):
        trio.run(main)
        gc.collect()
    assert server.wait_closed()
