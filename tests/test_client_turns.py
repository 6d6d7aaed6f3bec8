"""When an event is handed out: in the turn of the loop in which a reader of nothing but bytes gets its bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from tests.calls import CONTEXT, LAST, begin, block_stop, delta, model, stop, text_start
from tests.server import Pause, Server, answer

from sseam import AsyncClient, TextDelta

STREAMS = 200
WORDS = 20
CERTIFICATES = ssl.create_default_context()  # made once: the test has clients by the hundred


class CountingLoop(asyncio.SelectorEventLoop):
    """A loop that knows its turn, and in which turn bytes came last on each connection.

    Attributes:
        turn: number of the turn that runs.
        arrivals: the turn of the last bytes, by the local port of the connection.
    """

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0
        self.arrivals: dict[int, int] = {}

    def _run_once(self) -> None:
        self.turn += 1
        super()._run_once()  # type: ignore[misc]  # pyright: ignore

    async def create_connection(self, protocol_factory: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        port: list[int] = []

        def make() -> Any:
            protocol = protocol_factory()
            received = protocol.data_received

            def data_received(data: bytes) -> None:
                self.arrivals[port[0]] = self.turn
                received(data)

            protocol.data_received = data_received
            return protocol

        transport, protocol = await super().create_connection(make, *args, **kwargs)
        port.append(transport.get_extra_info("sockname")[1])
        return transport, protocol


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        steps = [step for number in range(WORDS) for step in (delta(f"{number} "), Pause(0.005))]
        running.add(answer(begin(), text_start(), *steps, block_stop(), stop(), LAST))
        yield running


def port_of(connection: Any) -> int:
    return connection.get_extra_info("client_addr")[1]


async def drain(http: Any, url: str, lags: list[int]) -> None:
    loop: Any = asyncio.get_running_loop()
    async with http.stream("POST", f"{url}/v1/messages", content=b"{}") as response:
        port = port_of(response.extensions["network_stream"])
        lags += [loop.turn - loop.arrivals[port] async for _ in response.aiter_raw()]


async def read(http: Any, url: str, lags: list[int]) -> None:
    loop: Any = asyncio.get_running_loop()
    connections: list[Any] = []

    async def note(response: Any) -> None:
        connections.append(response.extensions["network_stream"])

    http.event_hooks["response"].append(note)
    async with AsyncClient(http).stream(model(url), CONTEXT) as stream:
        texts = (event async for event in stream if isinstance(event, TextDelta))
        lags += [loop.turn - loop.arrivals[port_of(connections[0])] async for _ in texts]


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_an_event_is_handed_out_in_the_turn_in_which_its_bytes_are(library: Any, server: Server) -> None:
    def lags_of(reader: Any) -> list[int]:
        lags: list[int] = []

        async def one() -> None:
            async with library.AsyncClient(verify=CERTIFICATES) as http:
                await reader(http, server.url, lags)

        async def all_of() -> None:
            await asyncio.gather(*(one() for _ in range(STREAMS)))

        with asyncio.Runner(loop_factory=CountingLoop) as runner:
            runner.run(all_of())
        return lags

    drained, handed_out = lags_of(drain), lags_of(read)
    assert len(handed_out) == STREAMS * WORDS
    # Whoever reads through a transport is woken in the turn after the one that took the bytes from the socket.
    assert set(handed_out) == set(drained) == {1}
