"""The persistent map against a dict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sseam.protocols.openai_responses.table import Table


@given(st.lists(st.tuples(st.integers(0, 40), st.integers())))
def test_every_version_stays_what_it_was(puts: list[tuple[int, int]]) -> None:
    table, plain = Table[int, int](), dict[int, int]()
    versions = [(table, plain)]
    for key, value in puts:
        table, plain = table.put(key, value), {**plain, key: value}
        versions.append((table, plain))
    for table, plain in versions:
        assert list(table.items()) == list(plain.items())
        assert list(table.values()) == list(plain.values())
        assert len(table) == len(plain)
        assert all(table.get(key) == plain.get(key) and (key in table) == (key in plain) for key in range(41))


def test_versions_that_part_share_nothing() -> None:
    first = Table[str, int]().put("a", 1)
    assert first.put("b", 2).get("c") is first.put("c", 3).get("b") is None
