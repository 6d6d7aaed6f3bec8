"""Departures from a protocol as data: what each is called, how bad it is, who is known for it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = ["Dialect", "Grade"]

Grade: TypeAlias = Literal["harmless", "soft", "gated", "fatal"]
"""harmless: tolerated always. soft: tolerated, refused under `strict`. gated: refused unless the
dialect lists it. fatal: refused always. A dialect's own codes are tolerated under `strict` too."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What one server does otherwise than the protocol says.

    Attributes:
        name: as it is given to `Parser(dialect=…)`.
        codes: the deviations that it is known for.
    """

    name: str
    codes: frozenset[str] = frozenset()
