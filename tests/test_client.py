"""The client over real HTTP: what comes out of an answer, whatever carries it, under sync, asyncio and trio."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
import traceback
import zlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import brotli
import httpx
import httpx2
import msgspec
import pytest
import zstandard
from tests.calls import (
    CONTEXT,
    LAST,
    PING,
    WITH_TOOL,
    api_error,
    begin,
    block_stop,
    call,
    chat_model,
    collect,
    delta,
    error_frame,
    frame,
    model,
    stop,
    text,
    text_start,
)
from tests.server import Answer, End, Pause, Raw, Request, Server, answer, until

import sseam
from sseam import (
    ApiError,
    AsyncClient,
    Client,
    Done,
    FramingError,
    OutputProtocolViolation,
    Retry,
    Start,
    StreamAborted,
    TextDelta,
    TimeLimits,
    TransportError,
    TruncatedStream,
)
from sseam.context import Options
from sseam.forged import discard_protocol_violation

pytestmark = pytest.mark.anyio

FAST = Retry(first_wait=0.001, max_wait=0.002)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both libraries, async and sync, and both event loops; where it is sync the loop does not matter."""
    if "run" in metafunc.fixturenames:
        rows = [
            ("asyncio", "httpx"),
            ("trio", "httpx2"),
            ("asyncio", "httpx sync"),
            ("asyncio", "httpx2 sync"),
        ]
        metafunc.parametrize(("anyio_backend", "run"), rows, indirect=True, ids=[f"{a}-{b}" for a, b in rows])
    elif "anyio_backend" in metafunc.fixturenames:
        metafunc.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


# One call, sync or async, with either library. All give the message and the events, or the error.


class Outcome:
    def __init__(self, stream: Any, events: list[Any], result: Any) -> None:
        self.attempts = stream.attempts
        self.events = events
        self.error: Any = result if isinstance(result, Exception) else None
        self.message: sseam.Message = result if isinstance(result, sseam.Message) else result.partial


def _run_sync(library: Any, of: Any, context: Any, settings: dict[str, Any], call: dict[str, Any]) -> Outcome:
    events: list[Any] = []
    with library.Client() as http, Client(http, **settings).stream(of, context, **call) as stream:
        try:
            events += stream
            result: Any = stream.message()
        except sseam.SseamError as error:
            result = error
    return Outcome(stream, events, result)


async def _run_async(library: Any, of: Any, context: Any, settings: dict[str, Any], call: dict[str, Any]) -> Outcome:
    events: list[Any] = []
    async with library.AsyncClient() as http, AsyncClient(http, **settings).stream(of, context, **call) as stream:
        try:
            await collect(stream, events)
            result: Any = await stream.message()
        except sseam.SseamError as error:
            result = error
    return Outcome(stream, events, result)


Run = Callable[..., Awaitable[Outcome]]


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    name, _, sync = request.param.partition(" ")
    library = {"httpx": httpx, "httpx2": httpx2}[name]

    async def call(of: Any, context: Any = CONTEXT, call: dict[str, Any] | None = None, **settings: Any) -> Outcome:
        settings = {"retry": FAST, **settings}
        with anyio.fail_after(10):
            if sync:
                return await anyio.to_thread.run_sync(_run_sync, library, of, context, settings, call or {})
            return await _run_async(library, of, context, settings, call or {})

    return call


async def test_an_answer_gives_its_events_and_its_message(server: Server, run: Run) -> None:
    server.add(answer(*text("Hel", "lo")))
    outcome = await run(model(server.url))
    assert outcome.error is None
    assert [type(event).__name__ for event in outcome.events] == [
        "Start", "UsageUpdate", "TextStart", "TextDelta", "TextDelta", "TextEnd", "UsageUpdate", "Done",
    ]  # fmt: skip
    assert outcome.message == sseam.parse(b"".join(text("Hel", "lo")), "anthropic-messages")
    assert outcome.events[-1].message is outcome.message
    timing = outcome.message.timing
    assert timing is not None
    assert timing.first_event is not None
    assert timing.first_text is not None
    assert 0 < timing.first_event <= timing.first_text <= timing.duration < 5
    (attempt,) = outcome.attempts
    assert (attempt.number, attempt.status, attempt.error, attempt.waited) == (1, 200, None, 0)


async def test_the_request_is_the_protocols_own(server: Server, run: Run) -> None:
    server.add(answer(*text("x")))
    await run(model(server.url), call={"key": "sk-secret", "options": Options(extra_headers={"X-Extra": "1"})})
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["x-extra"] == "1"
    assert json.loads(request.body)["stream"] is True


@pytest.mark.parametrize("size", [1, 7, 50, 4_000])
async def test_cuts_change_nothing(server: Server, size: int) -> None:
    data = b"".join(text("Hé", "llo 👋"))
    server.add(answer(*(data[at : at + size] for at in range(0, len(data), size))))
    async with httpx.AsyncClient() as http:
        message = await AsyncClient(http).complete(model(server.url), CONTEXT)
    assert message == sseam.parse(data, "anthropic-messages")


async def test_complete(server: Server, run: Run) -> None:
    del run
    server.add(answer(*text("x")))
    async with AsyncClient() as client:
        message = await client.complete(model(server.url), CONTEXT)
    with Client() as sync:
        assert await anyio.to_thread.run_sync(sync.complete, model(server.url), CONTEXT) == message
    assert message.text == "x"
    assert message.complete


# ---- content codings (B175)


def _flushed(compressor: Any, pieces: list[bytes], flush: Any) -> list[bytes]:
    return [compressor.compress(piece) + compressor.flush(flush) for piece in pieces]


def _gzip(pieces: list[bytes]) -> list[bytes]:
    return _flushed(zlib.compressobj(wbits=31), pieces, zlib.Z_SYNC_FLUSH)


def _members(pieces: list[bytes]) -> list[bytes]:
    return [gzip.compress(piece) for piece in pieces]


def _deflate(pieces: list[bytes]) -> list[bytes]:
    return _flushed(zlib.compressobj(), pieces, zlib.Z_SYNC_FLUSH)


def _bare_deflate(pieces: list[bytes]) -> list[bytes]:
    return _flushed(zlib.compressobj(wbits=-15), pieces, zlib.Z_SYNC_FLUSH)


def _brotli(pieces: list[bytes]) -> list[bytes]:
    compressor = brotli.Compressor()
    return [compressor.process(piece) + compressor.flush() for piece in pieces]


def _zstd(pieces: list[bytes]) -> list[bytes]:
    return _flushed(zstandard.ZstdCompressor().compressobj(), pieces, zstandard.COMPRESSOBJ_FLUSH_BLOCK)


CODINGS = [
    ("gzip", _gzip),
    ("x-gzip", _members),
    ("deflate", _deflate),
    ("deflate", _bare_deflate),
    ("br", _brotli),
    ("zstd", _zstd),
    ("gzip, br", lambda pieces: _brotli(_gzip(pieces))),
    ("identity", list),
]


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
async def test_b175_compressed_events_come_when_they_were_flushed(server: Server, coding: str, encode: Any) -> None:
    first, *rest = encode([b"".join(text("Hello")[:3]), b"".join(text("Hello")[3:])])
    server.add(answer(first, Pause(0.05), *rest, content_encoding=coding))
    async with httpx.AsyncClient() as http, AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
        message = await stream.message()
    assert message.text == "Hello"
    assert message.timing is not None
    assert message.timing.first_text is not None
    assert message.timing.duration - message.timing.first_text > 0.02


@pytest.mark.parametrize("size", [1, 3])
async def test_b175_one_decoder_for_the_whole_body(server: Server, size: int) -> None:
    data = gzip.compress(b"".join(text("Hello")))
    server.add(answer(*(data[at : at + size] for at in range(0, len(data), size)), content_encoding="gzip"))
    async with httpx.AsyncClient() as http:
        assert (await AsyncClient(http).complete(model(server.url), CONTEXT)).text == "Hello"


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("snappy", b"x", "'snappy' is not known"),
        ("gzip", b"data: {}\n\n", "gzip: "),
        ("zstd", b"data: x\n\n", "zstd: "),
    ],
)
async def test_b175_a_coding_that_cannot_be_undone_is_refused(
    server: Server, run: Run, coding: str, body: bytes, words: str
) -> None:
    server.add(answer(body, content_encoding=coding))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, FramingError)
    assert words in str(outcome.error)


async def test_the_body_of_an_error_is_decoded_too(server: Server, run: Run) -> None:
    body = gzip.compress(api_error("not_found_error", "model: x"))
    server.add(answer(body, status=404, content_type="application/json", content_encoding="gzip"))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, ApiError)
    assert (outcome.error.status, outcome.error.type, outcome.error.message) == (404, "not_found_error", "model: x")


@pytest.mark.parametrize(("status", "again"), [(400, False), (401, False), (429, True), (503, True)])
@pytest.mark.parametrize("coding", ["snappy", "gzip"])
async def test_an_error_that_cannot_be_decoded_is_the_services_all_the_same(
    server: Server, run: Run, coding: str, status: int, again: bool
) -> None:
    server.add(answer(b"{}", status=status, content_encoding=coding))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, ApiError)
    assert (outcome.error.status, outcome.error.retryable) == (status, again)
    assert "the body of the error could not be decoded" in str(outcome.error)
    assert [attempt.status for attempt in outcome.attempts] == [status] * (3 if again else 1)


async def test_an_error_over_the_limit_is_the_services_all_the_same(server: Server, run: Run) -> None:
    body = gzip.compress(b"x" * 80_000_000)
    server.add(answer(body, status=401, content_encoding="gzip"))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, ApiError)
    assert outcome.error.status == 401
    assert len(str(outcome.error)) < 1_000


# ---- what is not a stream


async def test_an_error_status(server: Server, run: Run) -> None:
    server.add(
        answer(
            api_error("rate_limit_error", "slow down", request_id="req_1"),
            status=429,
            content_type="application/json",
            retry_after="0.001",
        )
    )
    outcome = await run(model(server.url))
    error = outcome.error
    assert isinstance(error, ApiError)
    assert (error.status, error.type, error.request_id, error.retry_after, error.retryable) == (
        429, "rate_limit_error", "req_1", 0.001, True,
    )  # fmt: skip
    assert not error.delivered
    assert "Anthropic API error: slow down" in str(error)
    assert [attempt.status for attempt in outcome.attempts] == [429, 429, 429]
    assert [attempt.error.detail for attempt in outcome.attempts if attempt.error] == [error.detail] * 3
    assert str(error).endswith(f". POST {server.url}/v1/messages, 3 attempts")
    assert not outcome.message.complete


NO_STREAM: list[tuple[str, Answer, type[Exception], str]] = [
    ("html", answer(b"<html><title>Sign in</title></html>", content_type="text/html"), FramingError, "text/html"),
    ("text", answer(b"hello", content_type="text/plain"), FramingError, "'hello'"),
    ("204", answer(status=204), FramingError, "status 204"),
    ("an error as JSON", answer(api_error("overloaded_error"), content_type="application/json"), ApiError, "no"),
    ("JSON, unsaid", answer(api_error("api_error", "why"), content_type=""), ApiError, "why"),
    ("JSON as events", answer(api_error("api_error", "why")), ApiError, "why"),
    ("JSON that is nothing", answer(b'{"hello":1}', content_type="application/json"), sseam.SseamError, ""),
    ("broken JSON", answer(b'{"hello":', content_type="application/json"), FramingError, "broken JSON"),
    ("empty", answer(), TruncatedStream, ""),
    ("a redirect", answer(status=302, location="https://elsewhere.example/x?key=1"), ApiError, "elsewhere.example/x,"),
]


@pytest.mark.parametrize(("given", "kind", "words"), [row[1:] for row in NO_STREAM], ids=[row[0] for row in NO_STREAM])
async def test_what_is_no_stream_is_told_by_what_it_is(
    server: Server, run: Run, given: Answer, kind: type[Exception], words: str
) -> None:
    server.add(given)
    outcome = await run(model(server.url), retry=Retry(max_retries=0))
    assert isinstance(outcome.error, kind)
    assert words in str(outcome.error)
    assert "key=1" not in str(outcome.error)
    assert outcome.events == []


async def test_a_whole_message_in_place_of_a_stream(server: Server, run: Run) -> None:
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hello" * 1000}], "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip
    server.add(answer(json.dumps(body, indent=1).encode(), content_type="application/json"))
    outcome = await run(model(server.url))
    assert outcome.error is None
    assert outcome.message.text == "Hello" * 1000
    assert outcome.message.complete


async def test_an_error_body_that_does_not_end(server: Server, run: Run) -> None:
    server.add(answer(b"<html>" + b"x" * 300_000, End.HANG, status=502, content_type="text/html"))
    outcome = await run(model(server.url), retry=Retry(max_retries=0))
    assert isinstance(outcome.error, ApiError)
    assert outcome.error.status == 502


async def test_an_error_body_that_breaks_off(server: Server, run: Run) -> None:
    server.add(answer(b"Bad gateway", End.CLOSE, status=502, content_type="text/plain"))
    outcome = await run(model(server.url), retry=Retry(max_retries=0))
    assert isinstance(outcome.error, ApiError)
    assert outcome.error.message == "Bad gateway"


async def test_gemini_streams_a_json_array(server: Server, run: Run) -> None:
    chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    server.add(answer(b"[", json.dumps(chunk).encode(), b"]", content_type="application/json"))
    outcome = await run(sseam.models.gemini("g", base_url=server.url, keys=()))
    assert outcome.error is None
    assert outcome.message.text == "Hi"


# ---- faults in the middle


async def test_a_connection_that_breaks_in_the_middle(server: Server, run: Run) -> None:
    server.add(answer(*text("Hello")[:3], End.CLOSE))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, TransportError)
    assert outcome.error.delivered
    assert outcome.error.timeout is None
    assert outcome.message.text == "Hello"
    assert not outcome.message.complete
    assert len(server.requests) == 1
    assert isinstance(outcome.events[-1], TextDelta)


@pytest.mark.parametrize("ending", [End.RESET, Raw(b"zz\r\nnonsense"), Raw(b"5\r\nab")])
async def test_b222_nothing_is_repeated_once_text_was_given(server: Server, run: Run, ending: Any) -> None:
    server.add(answer(*text("Hello")[:3], Pause(0.02), ending, End.CLOSE))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, TransportError)
    assert outcome.message.text == "Hello"
    assert len(server.requests) == 1


async def test_a_wrong_content_length_proves_nothing(server: Server, run: Run) -> None:
    data = b"".join(text("Hello"))
    server.add(answer(data, length=len(data) + 10), answer(data[:-30], length=len(data) - 30))
    whole = await run(model(server.url))
    assert whole.error is None
    cut = await run(model(server.url))
    assert isinstance(cut.error, TruncatedStream)
    assert cut.message.text == "Hello"


async def test_half_a_frame_at_the_end(server: Server, run: Run) -> None:
    server.add(answer(*text("Hello")[:-1], LAST[:-10]))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, TruncatedStream)
    assert "inside a frame" in str(outcome.error)


async def test_what_comes_after_the_end_is_not_read(server: Server, run: Run) -> None:
    server.add(answer(*text("Hello"), Pause(0.01), b"data: garbage\n\n", End.HANG))
    outcome = await run(model(server.url))
    assert outcome.error is None
    assert outcome.message.text == "Hello"


# ---- retries


async def test_b224_a_connection_that_gave_nothing_is_tried_again(server: Server, run: Run) -> None:
    server.add(answer(End.NOTHING), answer(End.CLOSE), answer(*text("Hello")))
    outcome = await run(model(server.url))
    assert outcome.error is None
    assert outcome.message.text == "Hello"
    assert [(attempt.number, attempt.status) for attempt in outcome.attempts] == [(1, None), (2, 200), (3, 200)]
    assert [type(attempt.error) for attempt in outcome.attempts] == [TransportError, TransportError, type(None)]
    assert all(attempt.waited > 0 for attempt in outcome.attempts[1:])
    assert server.requests[0].body == server.requests[2].body


async def test_b224_a_byte_of_the_answer_and_it_is_not_sent_again(server: Server, run: Run) -> None:
    server.add(answer(begin()[:20], End.CLOSE), answer(*text("Hello")))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, TransportError)
    assert not outcome.error.delivered
    assert len(server.requests) == 1


RETRIED = [(408, True), (409, True), (429, True), (500, True), (503, True), (529, True), (400, False), (401, False)]


@pytest.mark.parametrize(("status", "again"), RETRIED)
async def test_which_status_is_tried_again(server: Server, run: Run, status: int, again: bool) -> None:
    server.add(answer(b"", status=status), answer(*text("Hello")))
    outcome = await run(model(server.url))
    assert len(server.requests) == (2 if again else 1)
    assert (outcome.error is None) is again


async def test_an_overload_as_the_first_event_is_tried_again(server: Server, run: Run) -> None:
    server.add(
        answer(error_frame("overloaded_error")),
        answer(begin("msg_lost"), PING, error_frame("overloaded_error")),
        answer(*text("Hello", id="msg_2")),
    )
    outcome = await run(model(server.url))
    assert outcome.error is None
    assert outcome.message.id == "msg_2"
    assert sum(isinstance(event, Start) for event in outcome.events) == 1
    assert [getattr(attempt.error, "type", None) for attempt in outcome.attempts] == ["overloaded_error"] * 2 + [None]


async def test_b222_an_overload_after_content_is_not(server: Server, run: Run) -> None:
    server.add(answer(*text("Hello")[:3], error_frame("overloaded_error")), answer(*text("again")))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, ApiError)
    assert outcome.error.delivered
    assert outcome.message.text == "Hello"
    assert len(server.requests) == 1


async def test_b228_the_usage_of_a_failed_attempt_is_kept(server: Server, run: Run) -> None:
    server.add(answer(begin(tokens=99), error_frame("overloaded_error")), answer(b"", status=500), answer(*text("x")))
    outcome = await run(model(server.url))
    first, second, third = outcome.attempts
    assert first.usage is not None
    assert first.usage.input_tokens == 99
    assert second.usage is None
    assert third.usage is None
    assert outcome.message.usage.input_tokens == 7


async def test_b228_an_attempt_that_was_given_up_is_no_success(server: Server) -> None:
    server.add(answer(begin(tokens=99), text_start(), delta("a"), End.HANG))
    async with AsyncClient() as client:
        for give_up in ("abort", "aclose"):
            stream = client.stream(model(server.url), CONTEXT)
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
            done = getattr(stream, give_up)()
            if done is not None:
                await done
            (attempt,) = stream.attempts
            assert isinstance(attempt.error, StreamAborted)
            assert attempt.usage is not None
            assert attempt.usage.input_tokens == 99
            await stream.aclose()


async def test_b226_a_quota_is_not_tried_again(server: Server, run: Run) -> None:
    quota = {"error": {"message": "rate limit of tokens", "type": "insufficient_quota", "code": "insufficient_quota"}}
    server.add(answer(json.dumps(quota).encode(), status=429, content_type="application/json"))
    outcome = await run(chat_model(server.url))
    assert isinstance(outcome.error, ApiError)
    assert not outcome.error.retryable
    assert len(server.requests) == 1


async def test_the_service_says_how_long(server: Server, run: Run) -> None:
    server.add(
        answer(status=429, retry_after_ms="5"),
        answer(status=400, x_should_retry="true", retry_after="0.004"),
        answer(*text("x")),
    )
    outcome = await run(model(server.url))
    assert [attempt.waited for attempt in outcome.attempts] == [0, 0.005, 0.004]


@pytest.mark.parametrize("headers", [{"retry_after": "1000"}, {"x_should_retry": "false"}])
async def test_the_service_says_no(server: Server, run: Run, headers: dict[str, str]) -> None:
    server.add(answer(status=503, **headers))
    outcome = await run(model(server.url))
    assert isinstance(outcome.error, ApiError)
    assert len(server.requests) == 1


async def test_retries_end(server: Server, run: Run) -> None:
    server.add(answer(status=500))
    outcome = await run(model(server.url), retry=Retry(max_retries=4, first_wait=0.001, max_wait=0.001))
    assert isinstance(outcome.error, ApiError)
    assert len(outcome.attempts) == 5


async def test_no_server(run: Run) -> None:
    outcome = await run(model("http://127.0.0.1:1"))
    assert isinstance(outcome.error, TransportError)
    assert len(outcome.attempts) == 3
    assert outcome.attempts[0].status is None


# ---- time limits (B229)


def limits(**seconds: float) -> TimeLimits:
    return TimeLimits(**{"connect": None, "first_event": None, "idle": None, **seconds})  # type: ignore[arg-type]


LATE: list[tuple[str, Answer, str, str]] = [
    ("no headers", answer(End.SILENCE), "first_event", ""),
    ("no body", answer(End.HANG), "first_event", ""),
    ("pings only", answer(*[PING, Pause(0.03)] * 30, *text("x")), "first_event", ""),
    ("comments only", answer(*[b": ping\n\n", Pause(0.03)] * 30, *text("x")), "first_event", ""),
    ("silence", answer(*text("Hello")[:3], End.HANG), "idle", "Hello"),
    ("pings in the middle", answer(*text("Hello")[:3], *[PING, Pause(0.03)] * 30), "idle", "Hello"),
    ("half a frame", answer(*text("Hello")[:3], LAST[:5], *[Pause(0.03), b" "] * 30), "idle", "Hello"),
    ("a trickle", answer(begin(), text_start(), *[delta("x"), Pause(0.02)] * 100), "total", "x"),
]
# Without headers a thread has only the library's own timeout, which must be told by the limit it stands for.
LATE.append(("no headers in all", answer(End.SILENCE), "total", ""))
LIMITS = {"first_event": {"first_event": 0.2}, "idle": {"idle": 0.2}, "total": {"total": 0.7, "idle": 5.0}}


@pytest.mark.parametrize(("given", "which", "said"), [row[1:] for row in LATE], ids=[row[0] for row in LATE])
async def test_b229_each_limit_is_its_own(server: Server, run: Run, given: Answer, which: str, said: str) -> None:
    server.add(given)
    outcome = await run(model(server.url), limits=limits(**LIMITS[which]), retry=Retry(max_retries=0))
    error = outcome.error
    assert isinstance(error, TransportError)
    assert error.timeout == which
    assert error.partial is outcome.message
    assert set(outcome.message.text) == set(said)
    assert not outcome.message.complete
    assert outcome.message.timing is not None
    assert 0.19 < outcome.message.timing.duration < 3
    assert server.wait_closed()


async def test_b229_no_first_event_is_tried_again_and_silence_later_is_not(server: Server, run: Run) -> None:
    server.add(answer(PING, End.HANG), answer(*text("Hello")[:3], End.HANG))
    outcome = await run(model(server.url), limits=limits(first_event=0.2, idle=0.2))
    assert [getattr(attempt.error, "timeout", None) for attempt in outcome.attempts] == ["first_event", "idle"]
    assert outcome.error.timeout == "idle"


async def test_the_limit_for_all_covers_the_waits(server: Server, run: Run) -> None:
    server.add(answer(status=500))
    retry = Retry(max_retries=1_000, first_wait=0.2, max_wait=0.2)
    outcome = await run(model(server.url), limits=limits(total=1.0), retry=retry)
    assert isinstance(outcome.error, ApiError | TransportError)
    assert len(outcome.attempts) <= 7  # each wait is at least three quarters of its 0.2 s
    assert outcome.message.timing is not None
    assert outcome.message.timing.duration < 2.0


async def test_progress_within_the_limits_is_not_late(server: Server, run: Run) -> None:
    server.add(answer(begin(), text_start(), *[Pause(0.02), delta("x")] * 30, block_stop(), stop(), LAST))
    outcome = await run(model(server.url), limits=limits(first_event=0.5, idle=0.5))
    assert outcome.error is None


async def test_a_busy_reader_is_not_timed(server: Server) -> None:
    server.add(answer(*text("a", "b"), End.HANG))
    client = AsyncClient(limits=limits(first_event=5.0, idle=0.2))
    async with client, client.stream(model(server.url), CONTEXT) as stream:
        async for event in stream:
            await anyio.sleep(0.3 if isinstance(event, TextDelta) else 0)
        assert (await stream.message()).text == "ab"


async def test_b231_pings_are_seen_as_life_and_not_as_progress(server: Server) -> None:
    server.add(answer(begin(), *[Pause(0.05), PING] * 10, *text("x")[1:]))
    client = AsyncClient()
    async with client, client.stream(model(server.url), CONTEXT) as stream:
        iterator = aiter(stream)
        assert isinstance(await anext(iterator), Start)
        progress = stream.last_progress
        assert progress is not None
        assert stream.last_seen is not None
        seen: list[tuple[bool, bool]] = []

        async def watch() -> None:
            await anyio.sleep(0.3)
            assert stream.last_seen is not None
            seen.append((stream.last_progress == progress, stream.last_seen > progress + 0.01))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            async for _ in iterator:
                pass
    assert seen == [(True, True)]


# ---- connections


async def test_b210_a_connection_serves_again_after_the_end(server: Server) -> None:
    server.add(answer(*text("Hello")))
    one = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(limits=one) as http:
        for _ in range(3):
            assert (await AsyncClient(http).complete(model(server.url), CONTEXT)).text == "Hello"
        with contextlib.suppress(ZeroDivisionError):
            async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
                async for _ in stream:
                    raise ZeroDivisionError
        async for _ in AsyncClient(http).stream(model(server.url), CONTEXT):
            pass
        assert (await AsyncClient(http).complete(model(server.url), CONTEXT)).text == "Hello"
    assert len({request.connection for request in server.requests[:3]}) == 1
    assert len(server.requests) == 6


def test_b210_the_same_without_a_loop(server: Server) -> None:
    server.add(answer(*text("Hello")))
    with httpx.Client(limits=httpx.Limits(max_connections=1)) as http:
        client = Client(http)
        for _ in range(3):
            assert client.complete(model(server.url), CONTEXT).text == "Hello"
        for _ in client.stream(model(server.url), CONTEXT):
            break
        with contextlib.suppress(ZeroDivisionError), client.stream(model(server.url), CONTEXT) as stream:
            for _ in stream:
                raise ZeroDivisionError
        assert client.complete(model(server.url), CONTEXT).text == "Hello"
    assert len({request.connection for request in server.requests[:3]}) == 1
    assert until(lambda: not any(thread.name == "sseam-watchdog" for thread in threading.enumerate()))


async def test_b243_nothing_blocks_the_loop(server: Server) -> None:
    server.add(answer(begin(), text_start(), *[Pause(0.02), delta("x")] * 50, block_stop(), stop(), LAST))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    async with AsyncClient() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await client.complete(model(server.url), CONTEXT)
        tasks.cancel_scope.cancel()
    assert ticks >= 10  # of a hundred, on a machine that has other work, too


async def test_every_event_comes_in_the_turn_of_its_bytes(server: Server) -> None:
    """An event that waited for more would be handed out when later bytes had been seen."""
    frames = text("a", "b", "c")
    server.add(answer(*[piece for one in frames for piece in (one, Pause(0.03))]))
    async with AsyncClient() as client, client.stream(model(server.url), CONTEXT) as stream:
        seen = {stream.last_seen async for _ in stream}
    assert len(seen) == len(frames)


# ---- tool calls


async def test_a_call_comes_through(server: Server, run: Run) -> None:
    server.add(answer(begin(), *call(0, arguments='{"city":"Rome"}'), stop("tool_use"), LAST))
    outcome = await run(model(server.url), WITH_TOOL)
    assert outcome.error is None
    assert outcome.message.tool_calls[0].arguments == {"city": "Rome"}


FORGED = 'I look. <invoke name="get_weather"><parameter name="city">Rome</parameter></invoke>'


async def test_a_call_written_as_text_is_a_fault(server: Server, run: Run) -> None:
    server.add(answer(*text(FORGED)))
    outcome = await run(model(server.url), WITH_TOOL)
    error = outcome.error
    assert isinstance(error, OutputProtocolViolation)
    assert (error.format, error.tool) == ("invoke", "get_weather")
    assert str(error).startswith("Anthropic stream protocol error: a call of the tool 'get_weather'")
    assert not any(isinstance(event, Done) for event in outcome.events)
    assert not outcome.message.complete
    assert discard_protocol_violation(outcome.message).text == "I look."


async def test_it_can_be_switched_off_and_needs_tools(server: Server, run: Run) -> None:
    server.add(answer(*text(FORGED)))
    assert (await run(model(server.url), WITH_TOOL, refuse_text_calls=False)).message.text == FORGED
    assert (await run(model(server.url))).message.complete


async def test_a_stop_sequence_that_was_asked_for_is_an_end(server: Server, run: Run) -> None:
    frames = [begin(), text_start(), delta("x"), block_stop(), stop("stop_sequence"), LAST]
    server.add(answer(*frames))
    asked = await run(model(server.url), call={"options": Options(stop_sequences=("END",))})
    assert asked.error is None
    unasked = await run(model(server.url))
    assert isinstance(unasked.error, sseam.StopReasonError)
    cut = frame("message_delta", delta={"stop_reason": "max_tokens", "stop_sequence": None}, usage={})
    with Server(answer(*frames[:4], cut, LAST)) as other:
        assert (await run(model(other.url), call={"accept": ["max_tokens"]})).error is None


@pytest.mark.parametrize("size", [1, 50, 10_000])
async def test_what_came_before_a_damaged_coding_counts(server: Server, run: Run, size: int) -> None:
    damaged = gzip.compress(b"".join(text("Hello")))[:-8] + bytes(8)
    pieces = [damaged[at : at + size] for at in range(0, len(damaged), size)]
    server.add(answer(*pieces, content_encoding="gzip"))
    outcome = await run(model(server.url))
    assert outcome.error is None
    assert outcome.message.text == "Hello"


async def test_a_hook_that_reads_the_body(server: Server) -> None:
    async def read(response: Any) -> None:
        await response.aread()

    server.add(answer(gzip.compress(b"".join(text("Hello"))), content_encoding="gzip"))
    async with httpx.AsyncClient(event_hooks={"response": [read]}) as http:
        assert (await AsyncClient(http).complete(model(server.url), CONTEXT)).text == "Hello"


async def test_a_content_type_that_comes_twice(server: Server, run: Run) -> None:
    server.add(answer(*text("Hello"), content_type="text/event-stream, text/event-stream; charset=utf-8"))
    assert (await run(model(server.url))).message.text == "Hello"


async def test_a_key_is_in_no_text(server: Server, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    server.add(answer(b"", status=500))
    needing = sseam.models.anthropic("claude-opus-5", base_url=server.url)
    outcome = await run(needing, call={"key": "sk-very-secret"})
    assert server.requests[0].headers["x-api-key"] == "sk-very-secret"
    assert "very-secret" not in f"{outcome.error!r} {outcome.error} {outcome.attempts} {outcome.error.__dict__}"
    assert "very-secret" not in caplog.text
    echo = api_error("authentication_error", "the key sk-very-secret is wrong")
    for given in (
        answer(echo, status=401, content_type="application/json"),
        answer(b"no: " + b"x" * 490 + b"sk-very-secret", status=401, content_type="text/plain"),
        answer(b"<p>sk-very-secret", content_type="text/html"),
        answer(echo, content_type="application/json"),
        answer(error_frame("authentication_error", "the key sk-very-secret is wrong")),
        answer(b"", status=401, x_request_id="sk-very-secret", x_echo="sk-very-secret"),
        answer(begin(), Raw(b"sk-very-secret\r\n"), End.CLOSE),
        answer(begin(), b"data: sk-very-secret"),
        answer(b"data: {" + b"-" * 42 + b"sk-very-secret" + b"-" * 200 + b"\n\n"),
    ):
        server.add(given)
        outcome = await run(needing, call={"key": "sk-very-secret"})
        error = outcome.error
        assert isinstance(error, sseam.SseamError)
        told = "".join(traceback.format_exception(error))
        shown = f"{told} {error!r} {error} {error.__dict__} {outcome.attempts} {[a.error for a in outcome.attempts]}"
        assert "sk-v" not in shown
        assert "***" in shown
    for bad in ("sk-\nsecret", "sk-sécret"):
        with pytest.raises(sseam.errors.RequestError) as caught:
            Client().stream(needing, CONTEXT, key=bad)
        assert "sk-" not in str(caught.value)
    with pytest.raises(sseam.errors.RequestError, match="'x-bad'"):
        Client().stream(model(server.url), CONTEXT, Options(extra_headers={"x-bad": "a\nb"}))


async def test_b216_a_foreign_error_of_the_library_passes(server: Server) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise ZeroDivisionError(request.url)

    async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as http:
        stream = AsyncClient(http).stream(model(server.url), CONTEXT)
        with pytest.raises(ZeroDivisionError):
            await stream.message()
        with pytest.raises(StreamAborted, match="ZeroDivisionError"):
            await stream.message()


# ---- a response in the background, joined again


def _numbered(number: int, kind: str, **fields: Any) -> bytes:
    return frame(kind, sequence_number=number, **fields)


def _background() -> list[bytes]:
    """The frames of a response of OpenAI's, each with its number."""
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "abcd", "annotations": []}
    whole = {**item, "status": "completed", "content": [part]}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    response = {"id": "resp_1", "object": "response", "model": "m", "status": "in_progress", "output": []}
    finished = {**response, "status": "completed", "output": [whole]}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": response}),
        ("response.in_progress", {"response": response}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        *(("response.output_text.delta", {**place, "delta": letter}) for letter in "abcd"),
        ("response.output_text.done", {**place, "text": "abcd"}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": whole}),
        ("response.completed", {"response": finished}),
    ]
    return [_numbered(number, kind, **fields) for number, (kind, fields) in enumerate(events)]


BACKGROUND = Options(extra_body={"background": True})


@pytest.mark.parametrize("cut", ["between", "inside", "end of the body"])
async def test_a_background_response_goes_on_where_it_broke(server: Server, run: Run, cut: str) -> None:
    frames = _background()
    broken = {"between": [End.CLOSE], "inside": [frames[6][:30], End.RESET], "end of the body": []}[cut]

    def choose(request: Request) -> Answer:
        if request.method == "POST":
            return answer(*frames[:6], Pause(0.02), *broken)
        if len(server.requests) == 2:
            return answer(status=503)
        # Two that came already, and a break once more.
        return answer(*frames[4:8], Pause(0.02), End.CLOSE) if len(server.requests) == 3 else answer(*frames[8:])

    server.choose(choose)
    of = sseam.models.openai_responses("m", base_url=server.url, keys=())
    outcome = await run(of, call={"options": BACKGROUND})
    assert outcome.error is None
    # What the server sent twice is told, and taken once.
    assert [deviation.code for deviation in outcome.message.deviations] == ["sequence_repeated"]
    whole = sseam.parse(b"".join(frames), "openai-responses")
    assert msgspec.structs.replace(outcome.message, deviations=()) == whole
    assert [event.text for event in outcome.events if isinstance(event, TextDelta)] == list("abcd")
    assert sum(isinstance(event, Start) for event in outcome.events) == 1
    paths = [(request.method, request.path) for request in server.requests]
    assert paths == [
        ("POST", "/responses"),
        ("GET", "/responses/resp_1?stream=true&starting_after=5"),
        ("GET", "/responses/resp_1?stream=true&starting_after=5"),
        ("GET", "/responses/resp_1?stream=true&starting_after=7"),
    ]
    assert [attempt.status for attempt in outcome.attempts] == [200, 503, 200, 200]


async def test_a_background_response_is_not_joined_for_ever(server: Server, run: Run) -> None:
    server.choose(
        lambda r: answer(*_background()[:6], Pause(0.02), End.CLOSE) if r.method == "POST" else answer(End.CLOSE)
    )
    of = sseam.models.openai_responses("m", base_url=server.url, keys=())
    outcome = await run(of, call={"options": BACKGROUND})
    assert isinstance(outcome.error, TransportError)
    assert outcome.message.text == "ab"
    assert len(server.requests) == 3


@pytest.mark.parametrize(("asked", "joins"), [("0.3", 2), ("500", 1)])
async def test_a_join_waits_as_long_as_the_service_asks(server: Server, run: Run, asked: str, joins: int) -> None:
    frames = _background()

    def choose(request: Request) -> Answer:
        if request.method == "POST":
            return answer(*frames[:6], Pause(0.02), End.CLOSE)
        return answer(status=429, retry_after=asked) if len(server.requests) == 2 else answer(*frames[6:])

    server.choose(choose)
    of = sseam.models.openai_responses("m", base_url=server.url, keys=())
    outcome = await run(of, call={"options": BACKGROUND})
    assert len(server.requests) == 1 + joins
    if joins == 2:
        assert outcome.message.timing is not None
        assert outcome.message.timing.duration >= 0.3
    else:
        assert isinstance(outcome.error, ApiError)
        assert "asks to wait 500 s, more than Retry.max_retry_after" in str(outcome.error)
        assert outcome.message.text == "ab"


async def test_one_in_the_foreground_is_lost_with_its_connection(server: Server, run: Run) -> None:
    server.add(answer(*_background()[:6], Pause(0.02), End.CLOSE))
    of = sseam.models.openai_responses("m", base_url=server.url, keys=())
    outcome = await run(of)
    assert isinstance(outcome.error, TransportError)
    assert len(server.requests) == 1
