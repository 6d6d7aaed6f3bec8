"""`sseam.recording.playback`: pieces, waits, order, and what a recording says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam.errors import RequestError
from sseam.recording.faults import Cut
from sseam.recording.playback import Answers, RandomCuts, Step, split
from sseam.recording.record import Recording, save

DATA = b"data: one\n\n: ping\n\ndata: two\r\n\r\nevent: x\rdata: 3\r\rdata: tail"
FRAMES = [b"data: one\n\n", b": ping\n\n", b"data: two\r\n\r\n", b"event: x\rdata: 3\r\r", b"data: tail"]
RECORDED = Recording(b"abcdefghij", chunks=((0.5, 4), (0.7, 1), (2.0, 5)))


@pytest.mark.parametrize(
    ("data", "cuts", "pieces"),
    [
        (DATA, "whole", [DATA]),
        (DATA, "frames", FRAMES),
        (b"data: 1\n\n\n\ndata: 2\n\n", "frames", [b"data: 1\n\n\n\n", b"data: 2\n\n"]),
        (b"data: 1\r\ndata: 2\r\n\r\n", "frames", [b"data: 1\r\ndata: 2\r\n\r\n"]),
        (b"abcdefg", 3, [b"abc", b"def", b"g"]),
        (b"abcdefg", 7, [b"abcdefg"]),
        (b"abcdefg", [5, 2], [b"ab", b"cde", b"fg"]),
        (b"abcdefg", (0, 2, 2, 7, 99, -1), [b"ab", b"cdefg"]),
        (b"abcdefg", [], [b"abcdefg"]),
        (b"", "frames", []),
        (b"", RandomCuts(), []),
    ],
)
def test_cuts(data: bytes, cuts: Any, pieces: list[bytes]) -> None:
    assert split(data, cuts) == pieces


@pytest.mark.parametrize(("cuts", "text"), [(0, "at least one byte"), ("lines", "no cuts 'lines'")])
def test_cuts_that_cannot_be(cuts: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Answers(DATA, cuts=cuts)


@given(data=st.binary(max_size=500), seed=st.integers(), mean=st.integers(1, 60), n=st.integers(1, 50))
def test_pieces_are_the_body(data: bytes, seed: int, mean: int, n: int) -> None:
    cuts: list[Any] = ["whole", "frames", n, [n], RandomCuts(seed, mean)]
    for kind in cuts:
        pieces = split(data, kind)
        assert b"".join(pieces) == data
        assert b"" not in pieces


def test_random_cuts_depend_on_the_seed_alone() -> None:
    data = bytes(range(256)) * 4
    assert split(data, RandomCuts(1)) == split(data, RandomCuts(1))
    assert split(data, RandomCuts(1)) != split(data, RandomCuts(2))
    assert len(split(data, RandomCuts(1, mean=4))) > 2 * len(split(data, RandomCuts(1)))


def steps(recording: Recording | bytes, **options: Any) -> list[tuple[float, bytes]]:
    return [(round(wait, 6), chunk) for wait, chunk in Answers(recording, **options).take().steps]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"cuts": "recorded", "pace": "recorded"}, [(0.5, b"abcd"), (0.2, b"e"), (1.3, b"fghij")]),
        ({"cuts": 3, "pace": "recorded"}, [(0.5, b"abc"), (1.5, b"def"), (0.0, b"ghi"), (0.0, b"j")]),
        ({"cuts": "recorded"}, [(0.0, b"abcd"), (0.0, b"e"), (0.0, b"fghij")]),
        # A fault may shorten the body.
        ({"cuts": "recorded", "pace": "recorded", "fault": Cut(2)}, [(0.5, b"ab")]),
    ],
)
def test_as_recorded(options: dict[str, Any], expected: list[tuple[float, bytes]]) -> None:
    assert steps(RECORDED, **options) == expected


def test_what_a_fault_adds_comes_with_the_last_byte() -> None:
    longer = Recording(RECORDED.data + b"klm", chunks=RECORDED.chunks)
    assert steps(longer, cuts="recorded", pace="recorded")[-1] == (0.0, b"klm")


@pytest.mark.parametrize("options", [{"cuts": "recorded"}, {"pace": "recorded"}])
def test_nothing_was_recorded(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not tell when"):
        Answers(DATA, **options)


@pytest.mark.parametrize(
    ("cuts", "waits"),
    [
        ("frames", [0.25] * 5),
        ("whole", [1.25]),
        (10, [0.25, 0.5, 0.0, 0.25, 0.0, 0.25]),
    ],
)
def test_pace_is_a_frame_whatever_the_cuts(cuts: Any, waits: list[float]) -> None:
    answer = Answers(DATA, cuts=cuts, pace=0.25).take()
    assert [step.wait for step in answer.steps] == waits


def test_empty_body() -> None:
    assert Answers(b"", pace=1.0).take().steps == []


@pytest.mark.parametrize(
    ("recording", "options", "status", "headers"),
    [
        (b"", {}, 200, {"content-type": "text/event-stream"}),
        (b"", {"status": 529}, 529, {"content-type": "application/json"}),
        (
            Recording(b"", 429, {"retry-after": "3"}),
            {},
            429,
            {"content-type": "application/json", "retry-after": "3"},
        ),
        (
            Recording(b"", 429, {"retry-after": "3", "content-type": "text/plain"}),
            {"status": 503, "headers": {"Retry-After": "4"}},
            503,
            {"content-type": "text/plain", "retry-after": "4"},
        ),
    ],
)
def test_status_and_headers(
    recording: Recording | bytes, options: dict[str, Any], status: int, headers: dict[str, str]
) -> None:
    answer = Answers(recording, **options).take()
    assert (answer.status, answer.headers) == (status, headers)


def test_one_recording_answers_every_request() -> None:
    answers = Answers(b"x")
    assert [answers.take().steps for _ in range(3)] == [[Step(0.0, b"x")]] * 3


def test_a_list_answers_in_order(tmp_path: Path) -> None:
    save(Recording(b"file", ending="close"), tmp_path / "a.sse")
    answers = Answers(["a.sse", b"bytes", Recording(b"recording", ending="reset")], folder=tmp_path)
    taken = [answers.take() for _ in range(3)]
    assert [answer.steps[0].chunk for answer in taken] == [b"file", b"bytes", b"recording"]
    assert [answer.ending for answer in taken] == ["close", "end", "reset"]
    with pytest.raises(RequestError, match="request 4 has no recording: 3 were given"):
        answers.take()


def test_nothing_to_replay() -> None:
    with pytest.raises(ValueError, match="no recordings"):
        Answers([])
    with pytest.raises(FileNotFoundError):
        Answers("missing.sse")


def test_empty_bytes_are_a_recording() -> None:
    assert Answers(b"").take().steps == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cutz": 1}, "a replay takes cuts, pace, status, headers, fault, folder, not cutz"),
        ({"status": "500"}, "status is an HTTP status, such as 529, not '500'"),
        ({"status": True}, "status is an HTTP status"),
        ({"pace": None}, 'pace is a number of seconds, or "recorded", not None'),
        ({"headers": [("a", "b")]}, "headers is a mapping"),
        ({"cuts": 2.5}, r'no cuts 2\.5\. There are "whole"'),
        ({"fault": "cut"}, r"one of sseam\.faults \(Cut, Drop, .*such as Cut\(frame=2\), not 'cut'"),
        ({"fault": Cut}, r"one of sseam\.faults .*not <class"),
    ],
)
def test_an_option_that_is_none(options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Answers(DATA, **options)


@pytest.mark.parametrize("pace", [-1, float("nan"), float("inf"), "slow"])
def test_a_pace_that_cannot_be(pace: Any) -> None:
    with pytest.raises(ValueError, match="pace is a number of seconds from 0"):
        Answers(DATA, pace=pace)


def test_random_pieces_have_a_size() -> None:
    with pytest.raises(ValueError, match="at least one byte, not 0"):
        RandomCuts(mean=0)


@pytest.mark.parametrize("source", [DATA.decode(), [DATA.decode()], 3, None, [3], bytearray(DATA)])
def test_what_is_no_recording(source: Any) -> None:
    with pytest.raises(TypeError, match=r"a recording .* path.*; the content itself is given as bytes"):
        Answers(source)


@pytest.mark.parametrize("text", ['{"error": {}}', '{"error": {}}' * 500], ids=["short", "long"])
def test_content_in_place_of_a_path_is_told(text: str) -> None:
    with pytest.raises(OSError) as caught:
        Answers(text)
    assert caught.value.__notes__ == [
        "A recording that is text is the path of a file; the content itself is given as bytes."
    ]
