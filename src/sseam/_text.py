"""Text that grows by fragments, as a persistent value.

Successive states share one list, the open lot, and each knows how many of its fragments are its own:
an append is O(1) and changes no earlier state. An append to a state that is not the newest copies
its share. A full lot is joined, since a small string costs three times its characters.
"""

from __future__ import annotations

import msgspec

__all__ = ["LOT", "Lots", "Text", "join", "open_lot"]

LOT = 256
"""Fragments in a full lot."""


class Lots:
    """The joined lots before the open one, newest first."""

    __slots__ = ("_earlier", "_length", "_text")

    def __init__(self, earlier: Lots | None, text: str) -> None:
        self._earlier = earlier
        self._text = text
        self._length = len(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lots) and self.join("") == other.join("")

    def __hash__(self) -> int:
        return hash(self.join(""))

    def join(self, last: str) -> str:
        """All of the text with `last` behind it.

        The lots are let go and the joined text is kept in their place: the value is the same, and a
        large text is not held twice.
        """
        texts = [last]
        lots: Lots | None = self
        while lots is not None:
            texts.append(lots._text[: lots._length])
            lots = lots._earlier
        texts.reverse()
        whole = "".join(texts)
        self._earlier = None
        self._text = whole
        self._length = len(whole) - len(last)
        return whole


def open_lot(lots: Lots | None, lot: list[str], used: int) -> tuple[Lots | None, list[str]]:
    """Room for one fragment more behind the `used` first ones of `lot`, which is full or has grown
    in another state."""
    if used == LOT:
        return Lots(lots, "".join(lot)), []
    return lots, lot[:used]


def join(lots: Lots | None, lot: list[str], used: int) -> str:
    """The whole text."""
    last = "".join(lot[:used])
    return lots.join(last) if lots is not None else last


class Text(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The same as one value, for where an append is not the whole cost."""

    lots: Lots | None
    lot: list[str]
    used: int

    @staticmethod
    def empty() -> Text:
        """The text without a fragment."""
        return Text(None, [], 0)

    @property
    def arrived(self) -> bool:
        """Whether any fragment came at all; an empty one counts."""
        return self.lots is not None or self.used > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.arrived == other.arrived and self.value() == other.value()

    def __ne__(self, other: object) -> bool:  # a struct has one of its own, by identity
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value())

    def add(self, fragment: str) -> Text:
        """This text with `fragment` behind it."""
        lots, lot, used = self.lots, self.lot, self.used
        if used != len(lot) or used == LOT:
            lots, lot = open_lot(lots, lot, used)
        lot.append(fragment)
        return Text(lots, lot, len(lot))

    def value(self) -> str:
        """The whole text."""
        return join(self.lots, self.lot, self.used)
