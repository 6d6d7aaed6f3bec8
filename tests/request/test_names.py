from __future__ import annotations

import pytest

from sseam.request.names import NameRule

PLAIN = NameRule(alphabet="a-z0-9_-", max_length=4)
WORD = NameRule(first="a-z_", alphabet="a-z0-9_.:-", max_length=4)


@pytest.mark.parametrize(
    ("rule", "name", "replayed"),
    [
        (PLAIN, "-1", "-1"),
        (PLAIN, "a.b", "a_b"),
        (PLAIN, "abcde", "abcd"),
        (PLAIN, "a\n", "a_"),
        (PLAIN, "", "_"),
        (WORD, "a.b", "a.b"),
        (WORD, "1abc", "_1ab"),
        (WORD, ".a", "_.a"),
        (WORD, "/a", "_a"),
        (WORD, "", "_"),
    ],
)
def test_a_name_is_taken_or_rewritten(rule, name, replayed):
    assert rule.replayed(name) == replayed
    assert rule.accepts(replayed)
    assert rule.accepts(name) is (name == replayed)
