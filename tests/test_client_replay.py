"""The client over recordings in place of a network: every fault of one, and a response that breaks at every byte."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx
import httpx2
import pytest
from tests.calls import CONTEXT, model

import sseam
from recordings import CALL, PROTOCOL
from sseam import AsyncClient, Client, Retry, Start, TextDelta, TimeLimits, models
from sseam.context import Model, Options
from sseam.pytest_plugin import sse_replay  # noqa: F401  # also where the package is not installed
from sseam.recording.faults import Fault, faults
from sseam.recording.record import Recording
from sseam.replay import Transport, transport

Replay = Callable[..., Transport]

LIBRARIES = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
KINDS = pytest.mark.parametrize("kind", ["sync", "asyncio", "trio"])
URL = "http://api.test"
SETTINGS: dict[str, Any] = {"limits": TimeLimits(first_event=0.2, idle=0.2), "retry": Retry(max_retries=0)}


def outcomes(kind: str, library: Any, of: Model, transports: Iterable[Transport]) -> list[Any]:
    """What `complete` gives over each transport: a message, or an error of ours."""

    async def main() -> list[Any]:
        found: list[Any] = []
        for each in transports:
            async with library.AsyncClient(transport=each) as http:
                try:
                    found.append(await AsyncClient(http, **SETTINGS).complete(of, CONTEXT))
                except sseam.SseamError as error:
                    found.append(error)
        return found

    if kind != "sync":
        return anyio.run(main, backend=kind)
    found: list[Any] = []
    for each in transports:
        with library.Client(transport=each) as http:
            try:
                found.append(Client(http, **SETTINGS).complete(of, CONTEXT))
            except sseam.SseamError as error:
                found.append(error)
    return found


# ---- whole recordings, and every fault of one

RECORDED = [
    (models.anthropic, "anthropic-messages", "conversation-1-calls"),
    (models.openai, "openai-chat", "text-then-call"),
    (models.openai_responses, "openai-responses", "parallel-calls-interleaved"),
    (models.gemini, "gemini-generate", "text-then-call"),
    (models.gemini_interactions, "gemini-interactions", "text"),
]


@LIBRARIES
@KINDS
@pytest.mark.parametrize(("make", "protocol", "name"), RECORDED, ids=[row[1] for row in RECORDED])
def test_a_recording_gives_its_message_however_it_is_cut(
    sse_replay: Replay,  # noqa: F811
    kind: str,
    library: Any,
    make: Callable[..., Model],
    protocol: str,
    name: str,
) -> None:
    path = Path("..", "fixtures", protocol, f"{name}.sse")
    data = (Path(__file__).parent / path).read_bytes()
    transports = [sse_replay(path, cuts=cuts) for cuts in ("whole", "frames", 1, 7)]
    found = outcomes(kind, library, make("m", base_url=URL, keys=()), transports)
    assert found == [sseam.parse(data, protocol)] * 4


@LIBRARIES
@KINDS
def test_no_fault_of_a_recording_gives_a_message(sse_replay: Replay, kind: str, library: Any) -> None:  # noqa: F811
    every: list[Fault] = list(faults(Recording(CALL)))
    whole = sseam.parse(CALL, PROTOCOL)
    found = outcomes(kind, library, model(URL), [sse_replay(CALL, fault=fault) for fault in every])
    assert len(found) == len(every) > 70
    for fault, error in zip(every, found, strict=True):
        assert isinstance(error, sseam.SseamError), fault
        assert error.partial is not None, fault
        assert not error.partial.complete, fault
        assert whole.text.startswith(error.partial.text), fault
        assert error.partial.tool_calls in ((), whole.tool_calls), fault


# ---- a response in the background that breaks, and is joined again where it was

Ending = Literal["end", "close", "reset", "stall"]
BROKEN = Path(__file__).parent.parent / "fixtures" / "openai-responses" / "row-30-obfuscation.sse"


def joined(data: bytes, ending: Ending) -> list[tuple[int, int | None, list[Recording]]]:
    """For each place of a break: the place, the last event before it, the two answers."""
    frames = data.split(b"\n\n")[:-1]
    ends = list(itertools.accumulate(len(frame) + 2 for frame in frames))
    rows: list[tuple[int, int | None, list[Recording]]] = []
    for cut in range(len(data)):
        came = sum(end <= cut for end in ends)
        # What was begun by the second answer is what the first one did not end.
        rest = data[ends[came - 1] :] if came else b""
        answers = [Recording(data[:cut], ending=ending)] + ([Recording(rest)] if came else [])
        rows.append((cut, came - 1 if came else None, answers))
    return rows


def read(http: Any, retry: Retry, events: list[sseam.Event]) -> sseam.Message | sseam.SseamError:
    """What comes of a response in the background."""
    client = Client(http, retry=retry, limits=TimeLimits(first_event=9, idle=9))
    of = models.openai_responses("m", base_url=URL, keys=())
    stream = client.stream(of, CONTEXT, Options(extra_body={"background": True}))
    try:
        events += stream
        return stream.message()
    except sseam.SseamError as error:
        return error


@pytest.mark.parametrize("ending", ["end", "close", "reset", "stall"])
def test_a_background_response_goes_on_from_every_byte(ending: Ending) -> None:
    data = BROKEN.read_bytes()
    whole = sseam.parse(data, "openai-responses")
    rows = joined(data, ending)
    using = transport([one for *_, answers in rows for one in answers], sleep=lambda _: None, cuts="whole")
    with httpx.Client(transport=using) as http:
        for cut, last, answers in rows:
            using.requests.clear()
            events: list[sseam.Event] = []
            found = read(http, Retry(max_retries=len(answers) - 1, first_wait=0.0, max_wait=0.0), events)
            asked = [request.url.params.get("starting_after") for request in using.requests]
            assert asked == [None, str(last)][: len(answers)], cut
            if last is None:  # which response it is, nobody knows yet
                assert isinstance(found, sseam.SseamError), cut
                assert found.partial is not None, cut
                assert (events, found.partial.content, found.partial.complete) == ([], (), False), cut
            else:
                assert found == whole, cut
                assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hel", "lo"], cut
                assert sum(isinstance(event, Start) for event in events) == 1, cut


@pytest.mark.parametrize("skip", [-3, -2, -1, 1, 2, 3])
def test_a_join_with_a_gap_or_an_overlap_gives_no_wrong_message(skip: int) -> None:
    """Where the server goes on at another place than was asked for."""
    data = BROKEN.read_bytes()
    whole = sseam.parse(data, "openai-responses")
    frames = [frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]]
    for came in range(1, len(frames)):
        answers = [Recording(b"".join(frames[:came])), Recording(b"".join(frames[max(0, came + skip) :]))]
        events: list[sseam.Event] = []
        with httpx.Client(transport=transport(answers, cuts="whole")) as http:
            found = read(http, Retry(max_retries=1, first_wait=0.0, max_wait=0.0), events)
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        if isinstance(found, sseam.Message):
            assert (found.text, found.stop_reason, found.complete) == (whole.text, "end_turn", True), came
            assert skip > 0 or text == whole.text, came
            assert found.deviations, came
        else:
            # What comes twice is taken once. Where all of it comes again, that is another stream's beginning.
            assert skip > 0 or came + skip <= 0, (came, found)
