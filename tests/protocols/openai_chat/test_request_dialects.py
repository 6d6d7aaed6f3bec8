from __future__ import annotations

from sseam.protocols.openai_chat.request_dialects import DIALECTS, UNKNOWN, request_dialect


def test_a_name_without_a_row_is_an_unknown_server():
    assert request_dialect(None) is UNKNOWN
    assert request_dialect("nobody") is UNKNOWN
    assert request_dialect("groq") is DIALECTS["groq"]


def test_each_row_has_its_own_name():
    assert all(name == row.name for name, row in DIALECTS.items())
