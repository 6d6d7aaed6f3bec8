"""Text by fragments: shared between states, never changed under one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sseam._text import LOT, Text


@given(st.lists(st.text(max_size=3), max_size=3 * LOT), st.data())
def test_any_earlier_text_can_grow_on_its_own(fragments: list[str], data: st.DataObject) -> None:
    texts = [Text.empty()]
    for fragment in fragments:
        texts.append(texts[-1].add(fragment))
    at = data.draw(st.integers(0, len(fragments)))
    fork = texts[at].add("fork").add("ed")
    assert fork.value() == "".join(fragments[:at]) + "forked"
    for number, text in enumerate(texts[:: LOT // 3 or 1]):
        assert text.value() == "".join(fragments[: number * (LOT // 3)])
    assert texts[-1].value() == "".join(fragments)
    assert texts[-1].add("x").value() == "".join(fragments) + "x"


def test_many_lots_are_one_text_that_can_be_asked_for_twice() -> None:
    text = Text.empty()
    for number in range(5 * LOT + 7):
        text = text.add(str(number))
    whole = "".join(map(str, range(5 * LOT + 7)))
    assert text.value() == whole
    assert text.value() == whole
    assert text.add("!").value() == whole + "!"


def test_an_empty_fragment_arrived() -> None:
    assert not Text.empty().arrived
    assert Text.empty().add("").arrived
    assert Text.empty() != Text.empty().add("")


def test_equality_is_by_value() -> None:
    first, second = Text.empty().add("a").add("b"), Text.empty().add("ab")
    assert first == second
    assert not first != second  # noqa: SIM202
    assert hash(first) == hash(second)
    assert first != "ab"
    lots = [Text.empty(), Text.empty()]
    for number in range(2 * LOT):
        lots = [text.add(str(number)) for text in lots]
    assert lots[0].lots == lots[1].lots
    assert hash(lots[0].lots) == hash(lots[1].lots)
