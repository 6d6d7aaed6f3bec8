"""The limit for making the connection, its TLS handshake included."""

from __future__ import annotations

import time
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from tests.calls import CONTEXT, model
from tests.server import End, Server, answer

from sseam import AsyncClient, Client, Retry, TimeLimits, TransportError

LIMITS = TimeLimits(connect=0.2, first_event=5.0, idle=5.0, total=5.0)


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize("kind", ["sync", "asyncio", "trio"])
def test_b229_a_handshake_that_is_not_answered(kind: str, library: Any) -> None:
    # The server waits for the end of what it takes for a request's head.
    with Server(answer(End.SILENCE)) as server:
        of = model(server.url.replace("http", "https"))
        settings: dict[str, Any] = {"limits": LIMITS, "retry": Retry(max_retries=0)}

        async def call_async() -> None:
            async with library.AsyncClient() as http:
                await AsyncClient(http, **settings).complete(of, CONTEXT)

        def call() -> None:
            if kind != "sync":
                anyio.run(call_async, backend=kind)
            else:
                with library.Client() as http:
                    Client(http, **settings).complete(of, CONTEXT)

        began = time.monotonic()
        with pytest.raises(TransportError) as caught:
            call()
        assert 0.19 < time.monotonic() - began < 2
        assert caught.value.timeout == "connect"
        assert caught.value.retryable
        assert not caught.value.delivered
        assert server.wait_closed()
