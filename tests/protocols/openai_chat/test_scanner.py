"""Whether a JSON value is open or closed, found without parsing it, whatever the fragments."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam.protocols.openai_chat.scanner import Scan, scan, starts_object

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.data())
def test_an_object_closes_at_its_last_character_however_it_is_cut(value: object, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    state = Scan()
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        piece = text[start:end]
        assert not (state.closed and piece)
        state, closed_at = scan(state, piece)
        assert closed_at == len(piece)
    assert state == Scan(begun=True, closed=True)


@pytest.mark.parametrize(
    ("text", "state", "at"),
    [
        ("", Scan(), 0),
        (" \n", Scan(), 2),
        ('{"a"', Scan(depth=1, begun=True), 4),
        ('{"a', Scan(depth=1, in_string=True, begun=True), 3),
        ('{"\\', Scan(depth=1, in_string=True, escaped=True, begun=True), 3),
        ('{"\\"', Scan(depth=1, in_string=True, begun=True), 4),
        ('{"}"', Scan(depth=1, begun=True), 4),
        ("{} ", Scan(begun=True, closed=True), 2),
        ('{"a":[{}]}{"b"', Scan(begun=True, closed=True), 10),
        ("[1]", Scan(begun=True, closed=True), 3),
        ('"text" more', Scan(begun=True, closed=True), 6),
        ("}", Scan(begun=True, closed=True), 1),
        ("12", Scan(begun=True), 2),
    ],
)
def test_state_after(text: str, state: Scan, at: int) -> None:
    assert scan(Scan(), text) == (state, at)


@pytest.mark.parametrize(
    ("text", "starts"), [("{", True), (" \t\r\n{", True), ("", False), ("[", False), ('"{', False), ("\u2028{", False)]
)
def test_starts_object(text: str, starts: bool) -> None:
    assert starts_object(text) is starts
