from __future__ import annotations

from sseam.protocols.openai_chat.request_dialects import DIALECTS


def test_each_row_has_its_own_name():
    assert all(name == row.name for name, row in DIALECTS.items())
