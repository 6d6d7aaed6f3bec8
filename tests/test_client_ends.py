"""What is left of a call without a good end: aborted, cancelled with the cancel swallowed, failed at its last try."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from tests.calls import (
    CONTEXT,
    LAST,
    WITH_TOOL,
    begin,
    call,
    collect,
    delta,
    error_frame,
    model,
    stop,
    text,
    text_start,
)
from tests.server import Answer, End, Pause, Server, answer

import sseam
from sseam import AsyncClient, Client, Retry, StreamAborted, TimeLimits

LIBRARIES = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])
KINDS = pytest.mark.parametrize("kind", ["sync", "asyncio", "trio"])


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def nothing_of_it(message: sseam.Message) -> bool:
    return message.content == message.tool_calls == message.withheld == () and not message.complete


# ---- calls that come after the abort (B208)

CALLS = (begin(), Pause(0.2), *call(0), *call(1, "toolu_2"), stop("tool_use"), LAST)


@LIBRARIES
@BACKENDS
def test_b208_calls_that_come_after_an_abort_are_nowhere(server: Server, library: Any, backend: str) -> None:
    server.add(answer(*CALLS))
    events: list[sseam.Event] = []
    raised: list[StreamAborted] = []

    async def read(stream: sseam.AsyncStream) -> None:
        try:
            await collect(stream, events)
        except StreamAborted as error:
            raised.append(error)

    async def main() -> None:
        async with library.AsyncClient() as http:
            stream = AsyncClient(http).stream(model(server.url), WITH_TOOL)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read, stream)
                while stream.partial.id is None:
                    await anyio.sleep(0.005)
                stream.abort()
            for _ in range(2):
                assert nothing_of_it(await stream.message())
                assert nothing_of_it(stream.partial)
                await anyio.sleep(0.5)  # the server has sent it all

    anyio.run(main, backend=backend)
    check_aborted(events, raised)


@LIBRARIES
def test_b208_the_same_without_a_loop(server: Server, library: Any) -> None:
    server.add(answer(*CALLS))
    events: list[sseam.Event] = []
    raised: list[StreamAborted] = []
    with library.Client() as http:
        stream = Client(http).stream(model(server.url), WITH_TOOL)
        abort = threading.Timer(0.1, stream.abort)
        abort.start()
        try:
            events += stream
        except StreamAborted as error:
            raised.append(error)
        for _ in range(2):
            assert nothing_of_it(stream.message())
            assert nothing_of_it(stream.partial)
            time.sleep(0.5)
        abort.join()
    check_aborted(events, raised)


def check_aborted(events: list[sseam.Event], raised: list[StreamAborted]) -> None:
    assert all(isinstance(event, sseam.Start | sseam.UsageUpdate) for event in events)
    (error,) = raised
    assert error.partial is not None
    assert nothing_of_it(error.partial)


# ---- whoever swallows the cancellation (B216)


@LIBRARIES
@BACKENDS
def test_b216_a_stream_stays_cancelled_for_whoever_swallows_it(server: Server, library: Any, backend: str) -> None:
    server.add(answer(begin(), text_start(), delta("Hello"), Pause(0.3), *text("Hello")[3:]))
    seen: list[str] = []

    async def read(stream: sseam.AsyncStream, scope: anyio.CancelScope) -> None:
        iterator = aiter(stream)
        while not seen:
            event = await anext(iterator)
            seen.extend([event.text] if isinstance(event, sseam.TextDelta) else [])
        scope.cancel()
        try:
            await anext(iterator)
        except anyio.get_cancelled_exc_class():
            seen.append("cancelled")
        for further in (lambda: anext(iterator), stream.message, stream.message):
            with pytest.raises(StreamAborted) as caught:
                await further()
            seen.append(caught.value.partial.text if caught.value.partial else "")

    async def main() -> None:
        async with library.AsyncClient() as http:
            stream = AsyncClient(http).stream(model(server.url), CONTEXT)
            with anyio.CancelScope() as scope:
                await read(stream, scope)

    anyio.run(main, backend=backend)
    assert seen == ["Hello", "cancelled", "Hello", "Hello", "Hello"]


# ---- attempts (B228)

LAST_ATTEMPTS = [
    ("refused", answer(begin(tokens=99), error_frame("overloaded_error")), sseam.ApiError),
    ("cut", answer(begin(tokens=99), text_start(), delta("x"), Pause(0.02), End.CLOSE), sseam.TransportError),
    ("ended", answer(begin(tokens=99), text_start(), delta("x")), sseam.TruncatedStream),
    ("silent", answer(begin(tokens=99), text_start(), delta("x"), End.HANG), sseam.TransportError),
]


def attempts_of(kind: str, url: str) -> tuple[list[Any], sseam.SseamError]:
    """The attempts of a call that fails, and its error."""
    settings: dict[str, Any] = {"retry": Retry(max_retries=1, first_wait=0.001), "limits": TimeLimits(idle=0.3)}

    async def main() -> tuple[list[Any], sseam.SseamError]:
        async with AsyncClient(**settings) as client:
            stream = client.stream(model(url), CONTEXT)
            with pytest.raises(sseam.SseamError) as caught:
                await stream.message()
            return list(stream.attempts), caught.value

    if kind != "sync":
        return anyio.run(main, backend=kind)
    with Client(**settings) as client:
        stream = client.stream(model(url), CONTEXT)
        with pytest.raises(sseam.SseamError) as caught:
            stream.message()
        return list(stream.attempts), caught.value


@KINDS
@pytest.mark.parametrize(("last", "error"), [row[1:] for row in LAST_ATTEMPTS], ids=[row[0] for row in LAST_ATTEMPTS])
def test_b228_a_last_attempt_that_failed_tells_its_usage_and_its_error(
    server: Server, kind: str, last: Answer, error: type[sseam.SseamError]
) -> None:
    server.add(answer(begin(tokens=55), error_frame("overloaded_error")), last)
    (first, second), raised = attempts_of(kind, server.url)
    assert (first.usage.input_tokens, type(first.error)) == (55, sseam.ApiError)
    assert (second.usage.input_tokens, type(second.error)) == (99, error)
    assert second.error is raised
    assert raised.partial is not None
    assert raised.partial.usage == second.usage


@KINDS
def test_b228_a_last_attempt_without_usage_is_counted_all_the_same(server: Server, kind: str) -> None:
    server.add(answer(begin(tokens=55), error_frame("overloaded_error")), answer(b"", status=500))
    (first, second), raised = attempts_of(kind, server.url)
    assert first.usage.input_tokens == 55
    assert (second.usage, second.status, second.error) == (None, 500, raised)
