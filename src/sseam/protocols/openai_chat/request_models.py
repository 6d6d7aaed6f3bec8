"""Which row of `request_dialects` a model's requests follow, and what of it the model itself wants otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from ...context import Model
from ...errors import RequestError
from ...request.families import anthropic_family, gemini_family
from .dialects import DIALECTS as READ_DIALECTS
from .dialects import server_at
from .request_dialects import DIALECTS, LOW_HIGH, UNKNOWN, RequestDialect

__all__ = ["request_dialect"]


def request_dialect(model: Model) -> RequestDialect:
    """The row of the model's dialect, as the model takes it; without a dialect, of the server at its base URL.

    A server that is not known has the row `UNKNOWN`. Raises RequestError for a dialect that there is not.
    """
    row = _row(model)
    for vendor, pattern, changes in _MODELS:
        if vendor == row.name and pattern.search(model.id.lower()):
            row = msgspec.structs.replace(row, **changes)
            break
    if row.name in _FAMILIES:
        row = _FAMILIES[row.name](row, model)
    if row.switch == "none" and model.thinking == "effort":
        row = msgspec.structs.replace(row, switch="effort", efforts=row.efforts or LOW_HIGH)
    return row


def _row(model: Model) -> RequestDialect:
    name = server_at(model.base_url) if model.dialect is None else model.dialect
    if name is None:
        return UNKNOWN
    if name not in DIALECTS and name not in READ_DIALECTS:
        raise _no_dialect(name)
    return DIALECTS.get(name, UNKNOWN)


def _no_dialect(name: str) -> RequestError:
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), DIALECTS)
    meant = f"Did you mean {' or '.join(map(repr, close))}?" if close else f"There are {', '.join(DIALECTS)}"
    return RequestError(f"openai-chat has no dialect {name!r}", hint=meant)


def _model(vendor: str, pattern: str, **changes: Any) -> tuple[str, re.Pattern[str], dict[str, Any]]:
    return vendor, re.compile(pattern), changes


# What a vendor's models want otherwise than its row says; the first that fits. Sources: as of `request_dialects`.
_MODELS = (
    _model("moonshot", r"k3", switch="effort", efforts=("low", "high", "max"), switch_on={}, sampling="none"),
    _model("moonshot", r"k2\.[67]", choices=("none", "auto"), sampling="none"),
    _model("moonshot", r"k2\.5|thinking", sampling="none"),
    _model("xai", r"non-reasoning", switch="none"),
    _model("xai", r"grok-4\.20.*-reasoning", switch="none", stop=False),
    _model("xai", r"grok-(3-mini|[4-9]|code)", stop=False),
)


def _as_gemini_takes_it(row: RequestDialect, model: Model) -> RequestDialect:
    """The efforts stand for budgets or levels of the model's own, of which not every one has all."""
    if "gemini" not in model.id.lower():
        return row
    family = gemini_family(model.id, model.thinking)
    match family.thinking:
        case "none":
            return msgspec.structs.replace(row, switch="none")
        case "level":
            return msgspec.structs.replace(row, efforts=family.levels, proofs=True)
        case "budget":
            efforts = (effort for effort in row.efforts if effort != "none" or family.can_disable)
            return msgspec.structs.replace(row, efforts=tuple(efforts))


def _as_anthropic_takes_it(row: RequestDialect, model: Model) -> RequestDialect:
    """What the model refuses, it refuses here, too."""
    family = anthropic_family(model.id, model.thinking)
    return msgspec.structs.replace(
        row,
        switch="thinking_budget" if family.manual else "thinking_off",
        can_disable=family.disabled and (family.manual or family.adaptive != "no"),
        choices=("none", "auto") if family.forced == "never" else row.choices,
        sampling=family.sampling,
    )


_FAMILIES: dict[str, Callable[[RequestDialect, Model], RequestDialect]] = {
    "gemini-compat": _as_gemini_takes_it,
    "anthropic-compat": _as_anthropic_takes_it,
}
