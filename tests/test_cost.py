"""What a message cost."""

from __future__ import annotations

import sys
from decimal import Decimal

import pytest

from sseam import Message, Usage
from sseam.cost import price
from sseam.models import anthropic, compatible

SONNET = anthropic("claude-sonnet-4-5")


def test_a_price_by_kind_of_token() -> None:
    plain = price(Message(usage=Usage(input_tokens=1_000, output_tokens=100)), SONNET)
    assert plain is not None
    assert plain.total == plain.input + plain.output
    assert plain.total > Decimal(0)
    cached = price(Message(usage=Usage(input_tokens=1_000, output_tokens=100, cache_read_tokens=900)), SONNET)
    assert cached is not None
    assert cached.input < plain.input
    assert cached.output == plain.output


@pytest.mark.parametrize("usage", [Usage(), Usage(input_tokens=1), Usage(output_tokens=1)])
def test_unknown_tokens_have_no_price(usage: Usage) -> None:
    assert price(Message(usage=usage), SONNET) is None


def test_an_unknown_model_has_no_price() -> None:
    message = Message(usage=Usage(input_tokens=1, output_tokens=1))
    assert price(message, anthropic("nothing-of-that-name")) is None
    assert price(message, compatible("claude-sonnet-4-5", base_url="http://localhost:1")) is None


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(ImportError, match=r"sseam\[cost\]"):
        price(Message(), SONNET)
