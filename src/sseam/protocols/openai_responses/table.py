"""A persistent map, for what grows with the items of a response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from ..._persistent import Index, Vector

__all__ = ["Table"]

K = TypeVar("K")
V = TypeVar("V")


class Table(msgspec.Struct, Generic[K, V], frozen=True, gc=False):
    """An immutable map in the order in which its keys came. `put` copies no more than a `Vector` does."""

    _places: Index[K] = Index()
    _entries: Vector[tuple[K, V]] = Vector()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return self._places.get(key) is not None

    def get(self, key: K) -> V | None:
        """The value of `key`, or None."""
        place = self._places.get(key)
        return self._entries[place][1] if place is not None else None

    def put(self, key: K, value: V) -> Table[K, V]:
        """This map with `value` for `key`."""
        place = self._places.get(key)
        if place is None:
            return Table(self._places.add(key, len(self._entries)), self._entries.append((key, value)))
        return Table(self._places, self._entries.replace(place, (key, value)))

    def items(self) -> Iterator[tuple[K, V]]:
        """The keys and their values."""
        return iter(self._entries)

    def values(self) -> Iterator[V]:
        """The values."""
        return (value for _, value in self._entries)
