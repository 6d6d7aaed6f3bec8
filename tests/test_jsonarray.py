"""A JSON array that comes in chunks, to frames."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam import FramingError, Limits
from sseam.jsonarray import END, AnyFramer, ArrayFramer
from sseam.sse import Frame, Tail


def feed(framer: ArrayFramer | AnyFramer, chunks: Iterable[bytes]) -> tuple[list[Frame], str, Tail | None]:
    """The frames, the error that ended them, the tail if there was none."""
    frames: list[Frame] = []
    for chunk in chunks:
        try:
            frames += framer.feed(chunk)
        except FramingError as error:
            return frames + error.frames, str(error), None
    return frames, "", framer.close()


def ways(data: bytes) -> list[list[bytes]]:
    """Whole, byte by byte, and in two at every place."""
    return [
        [data],
        [data[at : at + 1] for at in range(len(data))],
        *([data[:at], data[at:]] for at in range(len(data))),
    ]


@pytest.mark.parametrize(
    ("data", "elements", "incomplete", "pending"),
    [
        (b"[]", [], False, b""),
        (b" \r\n[ \n]\r\n", [], False, b""),
        (b"[{}]", [b"{}"], False, b""),
        (b'[{"a":1},{"b":[{}]}]', [b'{"a":1}', b'{"b":[{}]}'], False, b""),
        (b'[{\n "a": 1\n}\n,\r\n{\n}\n]\n', [b'{\n "a": 1\n}', b"{\n}"], False, b""),
        (rb'[{"a":"}]\""},{"\\":"{["}]', [rb'{"a":"}]\""}', rb'{"\\":"{["}'], False, b""),
        (rb'[{"a":"\\\\"},{"a":"\\\""}]', [rb'{"a":"\\\\"}', rb'{"a":"\\\""}'], False, b""),
        ('[{"a":"é\u2028😀"}]'.encode(), ['{"a":"é\u2028😀"}'.encode()], False, b""),
        (b'\xef\xbb\xbf[{"a":1}]', [b'{"a":1}'], False, b""),
        (b"[{]", [b"{]"], True, b""),  # what an element holds is the decoder's matter
        (b"", [], True, b""),
        (b"[", [], True, b""),
        (b"[{}", [b"{}"], True, b""),
        (b"[{},", [b"{}"], True, b""),
        (b'[{},{"a":"\\', [b"{}"], True, b'{"a":"\\'),
        (b'[{"a":{}', [], True, b'{"a":{}'),
    ],
)
def test_elements(data: bytes, elements: list[bytes], incomplete: bool, pending: bytes) -> None:
    for chunks in ways(data):
        frames, error, tail = feed(ArrayFramer(), chunks)
        assert not error
        assert tail is not None
        found = [frame for frame in frames if frame.event == "message"]
        assert [frame.data for frame in found] == elements
        assert [frame.number for frame in frames] == list(range(len(frames)))
        assert all(data[frame.offset : frame.offset + len(frame.data)] == frame.data for frame in frames)
        assert [frame.event for frame in frames[len(found) :]] == ([] if incomplete else [END])
        assert (tail.incomplete, tail.data, tail.frame) == (incomplete, pending, None)


@pytest.mark.parametrize(
    ("data", "count", "told"),
    [
        (b"x", 0, "'[' expected, not b'x' (frame 0, byte 0)"),
        (b"[1]", 0, "'{' or ']' expected, not b'1' (frame 0, byte 1)"),
        (b'["a"]', 0, "not b'\"'"),
        (b"[[{}]]", 0, "not b'['"),
        (b"[{}{}]", 1, "',' or ']' expected, not b'{' (frame 1, byte 3)"),
        (b"[{},]", 1, "'{' expected, not b']' (frame 1, byte 4)"),
        (b"[,{}]", 0, "not b','"),
        (b"[{} x", 1, "not b'x'"),
        (b'[{"a":"0123456789"}]', 0, "larger than the frame limit of 15 bytes (frame 0, byte 1)"),
        (b'[{},{"a":"0123456789"}]', 1, "larger than the frame limit of 15 bytes (frame 1, byte 4)"),
        (b'[{},{"a":"0123456789', 1, "larger than the frame limit of 15 bytes (frame 1, byte 4)"),
    ],
)
def test_what_is_refused(data: bytes, count: int, told: str) -> None:
    seen = set()
    for chunks in ways(data):
        framer = ArrayFramer(Limits(frame=15))
        frames, error, _ = feed(framer, chunks)
        assert told in error
        assert len(frames) == count
        seen.add((tuple(frames), error))
        with pytest.raises(FramingError, match="failed before"):
            framer.feed(b"]")
        with pytest.raises(FramingError, match="failed before"):
            framer.close()
    assert len(seen) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    elements=st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=4),
    indent=st.sampled_from([None, 0, 2]),
    plain=st.booleans(),
    data=st.data(),
)
def test_any_array_cut_anywhere(elements: list[Any], indent: int | None, plain: bool, data: st.DataObject) -> None:
    body = json.dumps(elements, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    chunks = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    frames, error, tail = feed(ArrayFramer(), chunks)
    assert not error
    assert tail is not None
    assert not tail.incomplete
    assert [json.loads(frame.data.decode("utf-8", "surrogatepass")) for frame in frames[:-1]] == elements
    assert frames[-1].event == END


def test_an_element_comes_with_its_last_byte() -> None:
    framer = ArrayFramer()
    assert framer.feed(b'[{"a":1') == []
    assert [frame.data for frame in framer.feed(b"}")] == [b'{"a":1}']
    assert framer.feed(b"\n,\r\n") == []
    assert [frame.event for frame in framer.feed(memoryview(b"{}]"))] == ["message", END]


def test_what_follows_the_array_is_kept_as_a_sample() -> None:
    framer = ArrayFramer()
    framer.feed(b"[]\nmore\n")
    framer.feed(b"x" * (2 << 20))
    tail = framer.close()
    assert tail.stray.startswith(b"\nmore\nxxx")
    assert len(tail.stray) == 1 << 20
    with pytest.raises(FramingError, match="closed"):
        framer.feed(b"x")


def test_no_chunk_is_not_bytes() -> None:
    for framer in (ArrayFramer(), AnyFramer()):
        with pytest.raises(TypeError):
            framer.feed("[")  # type: ignore[arg-type]


def test_the_cost_is_linear_however_the_bytes_are_cut() -> None:
    def seconds(size: int) -> float:
        body = b'[{"a":"' + b'\\"{' * size + b'"}]'
        chunks = [body[at : at + 2] for at in range(0, len(body), 2)]
        best = 9.0
        for _ in range(3):
            framer = ArrayFramer()
            start = time.process_time()
            for chunk in chunks:
                framer.feed(chunk)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(80_000) < 8 * seconds(20_000)  # 4 if linear, 16 if quadratic


@pytest.mark.parametrize("lead", [b"", b"\r\n \t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'[{"a":1}]', [b'{"a":1}', b"]"]),
        (b'data: {"a":1}\n\n', [b'{"a":1}']),
        (b'data: [{"a":1}]\n\n', [b'[{"a":1}]']),
        (b": x\n\ndata: 1\n\n", [b"1"]),
    ],
)
def test_the_first_byte_chooses(lead: bytes, body: bytes, found: list[bytes]) -> None:
    if body.startswith(b"data") and lead == b"\r\n \t":
        lead = b"\r\n"  # a blank in front makes the line no field
    for chunks in ways(lead + body):
        frames, error, tail = feed(AnyFramer(), chunks)
        assert not error
        assert tail is not None
        assert not tail.incomplete
        assert [frame.data for frame in frames] == found
        assert all((lead + body)[frame.offset :] for frame in frames)


def test_a_body_of_blanks_is_none() -> None:
    frames, error, tail = feed(AnyFramer(), [b"\n", b" ", b"\n"])
    assert (frames, error) == ([], "")
    assert tail is not None
    assert not tail.incomplete
