"""What a message cost, by the price tables of `genai-prices` (extra `cost`)."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from .context import Model
from .message import Message

__all__ = ["Price", "price"]


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars."""

    input: Decimal
    output: Decimal
    total: Decimal


def price(message: Message, model: Model) -> Price | None:
    """What the tokens of a message cost at the service of `model`; None where tokens or price are not known.

    A price that is not known is not zero: a sum over calls must say how many it leaves out.

    Raises:
        ImportError: `genai-prices` is not installed.
    """
    try:
        import genai_prices
    except ImportError:
        raise ImportError("prices need genai-prices: pip install 'sseam[cost]'", name="genai_prices") from None
    usage = message.usage
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(counted, model.id, provider_api_url=model.base_url)
    except LookupError:
        return None
    return Price(input=found.input_price, output=found.output_price, total=found.total_price)
