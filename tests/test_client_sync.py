"""What only a client of threads has to mind: every wait before the headers, the thread that watches, sharing."""

from __future__ import annotations

import contextlib
import gzip
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from tests.calls import CONTEXT, begin, delta, model, text, text_start
from tests.server import End, Pause, Server, answer, until

import sseam
from sseam import Client, Retry, StreamAborted, TimeLimits, TransportError
from sseam import _connection as connection_module
from sseam._alarm import Alarm

ONCE = Retry(max_retries=0)
HANGING = answer(begin(), text_start(), delta("a"), End.HANG)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> Any:
    return request.param


class Clients(contextlib.ExitStack):
    """Clients of one library, closed with the test, and the threads that have come since."""

    def __init__(self, library: Any) -> None:
        super().__init__()
        self.library = library
        self._before = set(threading.enumerate())
        self.first: Any = None  # the stream that has the only place

    def make(self, **limits: int) -> Any:
        return self.enter_context(self.library.Client(limits=self.library.Limits(**limits)))

    def requests_running(self) -> bool:
        """Whether a thread of this test still waits for an answer."""
        return any(thread.name == "sseam-request" for thread in set(threading.enumerate()) - self._before)


@pytest.fixture
def clients(library: Any) -> Iterator[Clients]:
    with Clients(library) as made:
        yield made


def failing(call: Callable[[], object]) -> tuple[Any, float]:
    """The error of a call, and the seconds it took."""
    began = time.monotonic()
    with pytest.raises(sseam.SseamError) as caught:
        call()
    return caught.value, time.monotonic() - began


# ---- before the headers


def waiting_for_a_place(clients: Clients, server: Server, limits: TimeLimits) -> sseam.Stream:
    server.add(HANGING)
    http = clients.make(max_connections=1)
    clients.first = clients.enter_context(Client(http).stream(model(server.url), CONTEXT))
    next(iter(clients.first))
    return Client(http, limits=limits, retry=ONCE).stream(model(server.url), CONTEXT)


def in_a_handshake(clients: Clients, server: Server, limits: TimeLimits) -> sseam.Stream:
    server.add(answer(End.SILENCE))
    url = server.url.replace("http", "https")
    return Client(clients.make(), limits=limits, retry=ONCE).stream(model(url), CONTEXT)


def on_a_used_connection(clients: Clients, server: Server, limits: TimeLimits) -> sseam.Stream:
    server.add(answer(*text("x")), answer(End.SILENCE))
    client = Client(clients.make(), limits=limits, retry=ONCE)
    client.complete(model(server.url), CONTEXT)
    return client.stream(model(server.url), CONTEXT)


WAITS = [waiting_for_a_place, in_a_handshake, on_a_used_connection]


@pytest.mark.parametrize("which", ["first_event", "total"])
@pytest.mark.parametrize("wait", WAITS)
def test_a_limit_ends_every_wait(wait: Any, which: str, clients: Clients, server: Server) -> None:
    limits = TimeLimits(**{"connect": 3.0, "first_event": 3.0, which: 0.3})  # type: ignore[arg-type]
    stream = wait(clients, server, limits)
    error, seconds = failing(stream.message)
    assert isinstance(error, TransportError)
    assert error.timeout == which
    assert f"within its limit of 0.3 s (TimeLimits.{which})" in str(error)
    assert 0.25 < seconds < 2


@pytest.mark.parametrize("wait", WAITS)
def test_abort_ends_every_wait(wait: Any, clients: Clients, server: Server) -> None:
    stream = wait(clients, server, TimeLimits(connect=3, first_event=3))
    threading.Timer(0.2, stream.abort).start()
    began = time.monotonic()
    assert stream.message().stop_reason == "aborted"
    assert time.monotonic() - began < 2
    assert isinstance(stream.attempts[-1].error, StreamAborted)


def test_what_nobody_waits_for_any_more_is_not_sent(clients: Clients, server: Server) -> None:
    stream = waiting_for_a_place(clients, server, TimeLimits(first_event=3))
    threading.Timer(0.1, stream.abort).start()
    stream.message()
    assert clients.requests_running()
    clients.first.close()
    assert until(lambda: not clients.requests_running())
    assert len(server.requests) == 1


@pytest.mark.parametrize("after", [0.0, 0.001, 0.003, 0.01])
def test_abort_in_the_first_moments(after: float, server: Server) -> None:
    """While the HTTP client is made, and the request is built: there is nothing to end yet."""
    server.add(answer(End.SILENCE))
    with Client(limits=TimeLimits(first_event=5)) as client:
        stream = client.stream(model(server.url), CONTEXT)
        threading.Timer(after, stream.abort).start()
        began = time.monotonic()
        assert stream.message().stop_reason == "aborted"
        assert time.monotonic() - began < 2


def test_abort_before_there_is_anything_to_end(library: Any, server: Server) -> None:
    streams: list[sseam.Stream] = []

    class Aborting(library.Client):
        def build_request(self, *args: Any, **options: Any) -> Any:
            streams[0].abort()
            return super().build_request(*args, **options)

    with Aborting() as http:
        streams.append(Client(http).stream(model(server.url), CONTEXT))
        assert streams[0].message().stop_reason == "aborted"
    assert server.requests == []


def test_a_used_connection_is_let_go_of_with_its_call(clients: Clients, server: Server) -> None:
    server.add(answer(*text("x")), answer(End.SILENCE), answer(*text("y")))
    client = Client(clients.make(max_connections=1), limits=TimeLimits(first_event=20))
    client.complete(model(server.url), CONTEXT)
    stream = client.stream(model(server.url), CONTEXT)
    threading.Timer(0.1, stream.abort).start()
    stream.message()
    began = time.monotonic()
    assert client.complete(model(server.url), CONTEXT).text == "y"
    assert time.monotonic() - began < 2
    assert until(lambda: not clients.requests_running())


def test_many_aborts_lose_no_place(clients: Clients, server: Server) -> None:
    server.add(answer(begin(), text_start(), *[delta("a"), Pause(0.005)] * 4, End.CLOSE))
    http = clients.make(max_connections=1)
    client = Client(http, retry=ONCE)

    def abort_often(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(30):
            stream = client.stream(model(server.url), CONTEXT)
            threading.Timer(rng.random() * 0.03, stream.abort).start()
            with contextlib.suppress(sseam.SseamError):
                stream.message()

    threads = [threading.Thread(target=abort_often, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert until(lambda: not clients.requests_running())
    server.choose(lambda _: answer(*text("x")))
    assert client.complete(model(server.url), CONTEXT).text == "x"


def test_a_hook_that_reads_the_body(library: Any, server: Server) -> None:
    server.add(answer(gzip.compress(b"".join(text("x"))), content_encoding="gzip"))
    with library.Client(event_hooks={"response": [lambda response: response.read()]}) as http:
        assert Client(http).complete(model(server.url), CONTEXT).text == "x"


def test_an_auth_flow_with_requests_of_its_own(library: Any, server: Server) -> None:
    class Auth(library.Auth):
        def auth_flow(self, request: Any) -> Iterator[Any]:
            yield library.Request("POST", request.url, content=request.content)

    server.add(answer(*text("x")))
    with library.Client(auth=Auth()) as http:
        assert Client(http).complete(model(server.url), CONTEXT).text == "x"


def test_total_counts_what_earlier_attempts_took(clients: Clients, server: Server) -> None:
    server.add(answer(Pause(0.4), b"x", status=503), answer(End.SILENCE))
    client = Client(clients.make(), limits=TimeLimits(total=0.6), retry=Retry(first_wait=0.001))
    error, seconds = failing(lambda: client.complete(model(server.url), CONTEXT))
    assert error.timeout == "total"
    assert seconds < 1.2


def test_a_transport_of_the_callers_own_runs_in_the_callers_thread() -> None:
    threads: list[threading.Thread] = []

    def handle(request: httpx.Request) -> httpx.Response:
        threads.append(threading.current_thread())
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=b"".join(text("x")))

    with httpx.Client(transport=httpx.MockTransport(handle)) as http:
        assert Client(http).complete(model("http://a.test"), CONTEXT).text == "x"
    assert threads == [threading.current_thread()]


# ---- the thread that watches


def test_ctrl_c_passes_through_also_after_a_limit_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        time.sleep(0.1)
        raise KeyboardInterrupt

    with httpx.Client(transport=httpx.MockTransport(handle)) as http:
        stream = Client(http, limits=TimeLimits(first_event=0.02)).stream(model("http://a.test"), CONTEXT)
        with pytest.raises(KeyboardInterrupt):
            stream.message()
    assert len(stream.attempts) == 1


def test_a_thread_that_cannot_be_started_costs_one_call(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert until(lambda: not any(thread.name == "sseam-watchdog" for thread in threading.enumerate()))
    start = threading.Thread.start
    refused: list[str] = []

    def refuse_first(thread: threading.Thread) -> None:
        if thread.name == "sseam-watchdog" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_first)
    server.add(answer(begin(), End.HANG))
    with httpx.Client() as http:
        client = Client(http, limits=TimeLimits(idle=0.2), retry=ONCE)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            client.complete(model(server.url), CONTEXT)
        error, _ = failing(lambda: client.complete(model(server.url), CONTEXT))
    assert error.timeout == "idle"


def test_the_grace_of_an_ended_stream_does_not_reach_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its alarm may go off just when the rest was read: what it would shut down may be another call's by then."""
    shut: list[object] = []
    rings: list[Callable[[], float]] = []

    def keep(alarm: Alarm, due: float) -> None:
        rings.append(alarm.ring)

    monkeypatch.setattr(connection_module, "_shut_down", shut.append)
    monkeypatch.setattr(Alarm, "set", keep)
    with connection_module._grace("connection"):  # pyright: ignore[reportPrivateUsage]
        rings[0]()
    assert shut == ["connection"]
    rings[0]()
    assert shut == ["connection"]


# ---- sharing


def test_threads_that_share_a_client_share_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Slow(httpx.Client):
        def __init__(self, **options: Any) -> None:
            time.sleep(0.02)
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(httpx, "Client", Slow)
    with Server(answer(*text("x"))) as server, Client() as client:
        threads = [threading.Thread(target=client.complete, args=(model(server.url), CONTEXT)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
    assert len(made) == 1
    assert made[0].is_closed


# ---- errors


def test_an_error_of_a_broken_body_is_read_in_linear_time() -> None:
    """In chunks of a byte; a quadratic reader takes minutes."""

    def seconds(count: int) -> float:
        class Trickle(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                return (b"x" for _ in range(count))

        transport = httpx.MockTransport(lambda _: httpx.Response(500, stream=Trickle()))
        with httpx.Client(transport=transport) as http:
            began = time.process_time()
            with pytest.raises(sseam.ApiError):
                Client(http, retry=ONCE).complete(model("http://a.test"), CONTEXT)
            return time.process_time() - began

    assert seconds(100_000) < 3


def test_a_body_without_an_end_is_not_kept() -> None:
    sizes: list[int] = []

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                sizes.append(1 << 20)
                yield b"[" + b"1," * (1 << 19)

    headers = {"content-type": "application/json"}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=headers, stream=Endless()))
    with httpx.Client(transport=transport) as http, pytest.raises(sseam.FramingError, match="longer than 67,108,864"):
        Client(http).complete(model("http://a.test"), CONTEXT)
    assert len(sizes) < 70


def test_a_hook_that_fails_takes_nothing_from_the_message(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def recorder(*_: object) -> Callable[..., None]:
        def record(*_: object) -> None:
            raise KeyError("exporter")

        return record

    monkeypatch.setattr("sseam.telemetry.span_recorder", recorder)
    server.add(answer(*text("x")))
    with httpx.Client() as http, pytest.warns(RuntimeWarning, match="the telemetry of a call failed: KeyError"):
        assert Client(http).complete(model(server.url), CONTEXT).text == "x"


def test_an_abort_with_the_last_event_and_its_end_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[object] = []
    streams: list[sseam.Stream] = []

    def recorder(*_: object) -> Callable[..., None]:
        def record(message: sseam.Message, error: object) -> None:
            ends.append(error)
            streams[0].abort()  # the end has come, and was not handed out

        return record

    monkeypatch.setattr("sseam.telemetry.span_recorder", recorder)
    handle = sseam.replay.transport(b"".join(text("x")))
    with httpx.Client(transport=handle) as http:
        streams.append(Client(http).stream(model("http://a.test"), CONTEXT))
        events: list[object] = []
        with pytest.raises(StreamAborted):
            events.extend(streams[0])
        message = streams[0].message()
    assert not any(isinstance(event, sseam.Done) for event in events)
    assert (message.stop_reason, message.complete) == ("aborted", False)
    assert ends == [None]
