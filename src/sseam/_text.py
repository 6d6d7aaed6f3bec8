"""Text that grows by fragments, as a persistent value.

Successive states share one list and each knows how much of it is its own, so that an append is
O(1) and changes no earlier state. An append to a state that is not the newest copies its share.
Fragments are joined in lots, since a small string costs three times its characters.
"""

from __future__ import annotations

import msgspec

__all__ = ["Text"]

_LOT = 256


class _Lots:
    """The joined lots before the open one, newest first."""

    __slots__ = ("earlier", "text")

    def __init__(self, earlier: _Lots | None, text: str) -> None:
        self.earlier = earlier
        self.text = text

    def collapse(self) -> str:
        """The text of this lot and all earlier ones, which are let go: the value is the same."""
        if self.earlier is not None:
            texts: list[str] = []
            lots: _Lots | None = self
            while lots is not None:
                texts.append(lots.text)
                lots = lots.earlier
            texts.reverse()
            self.text = "".join(texts)
            self.earlier = None
        return self.text


class Text(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A text of `fragments` fragments. Compare with `value()`."""

    _lots: _Lots | None
    _lot: list[str]
    _used: int

    @staticmethod
    def empty() -> Text:
        """The text without a fragment."""
        return Text(None, [], 0)

    @property
    def arrived(self) -> bool:
        """Whether any fragment came at all; an empty one counts."""
        return self._used > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.arrived == other.arrived and self.value() == other.value()

    def __hash__(self) -> int:
        return hash(self.value())

    def add(self, fragment: str) -> Text:
        """This text with `fragment` behind it."""
        lot, used = self._lot, self._used
        if used == _LOT:
            return Text(_Lots(self._lots, "".join(lot[:_LOT])), [fragment], 1)
        if len(lot) != used:
            lot = lot[:used]
        lot.append(fragment)
        return Text(self._lots, lot, used + 1)

    def value(self) -> str:
        """The whole text."""
        lot = "".join(self._lot[: self._used])
        return self._lots.collapse() + lot if self._lots is not None else lot

