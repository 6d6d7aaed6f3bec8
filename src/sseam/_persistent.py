"""Persistent collections: changing one gives another and leaves the first as it was.

A reducer's state holds every block of a message and touches one at a time. A tuple or dict would be
copied whole at each touch, which is quadratic in the number of blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, cast

import msgspec

__all__ = ["Index", "Vector"]

T = TypeVar("T")
K = TypeVar("K")

_PAGE = 32


class Vector(msgspec.Struct, Generic[T], frozen=True, gc=False, eq=False):
    """An immutable sequence. `append` and `replace` copy one page and the table of pages."""

    _pages: tuple[tuple[T, ...], ...] = ()
    _length: int = 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        return self._pages[index // _PAGE][index % _PAGE]

    def __iter__(self) -> Iterator[T]:
        for page in self._pages:
            yield from page

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self._pages == cast("Vector[T]", other)._pages

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._pages)

    def append(self, item: T) -> Vector[T]:
        """This sequence with `item` behind it."""
        if self._length % _PAGE:
            pages = (*self._pages[:-1], (*self._pages[-1], item))
        else:
            pages = (*self._pages, (item,))
        return Vector(pages, self._length + 1)

    def extend(self, items: Iterable[T]) -> Vector[T]:
        """This sequence with `items` behind it."""
        vector = self
        for item in items:
            vector = vector.append(item)
        return vector

    def replace(self, index: int, item: T) -> Vector[T]:
        """This sequence with `item` at `index`."""
        pages = [*self._pages]
        page = [*pages[index // _PAGE]]
        page[index % _PAGE] = item
        pages[index // _PAGE] = tuple(page)
        return Vector(tuple(pages), self._length)


class Index(msgspec.Struct, Generic[K], frozen=True, gc=False, eq=False):
    """An immutable map from keys to numbers that grow from entry to entry.

    Successive maps share one dict; an entry belongs to a map only if its number is below the map's
    bound, so that adding is O(1) and changes no earlier map.
    """

    _numbers: dict[K, int] = {}
    _bound: int = 0

    def _own(self) -> dict[K, int]:
        return {key: number for key, number in self._numbers.items() if number < self._bound}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self._own() == cast("Index[K]", other)._own()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(frozenset(self._own()))

    def get(self, key: K) -> int | None:
        """The number of `key`, or None."""
        number = self._numbers.get(key)
        return number if number is not None and number < self._bound else None

    def add(self, key: K, number: int) -> Index[K]:
        """This map with `key`, which it does not hold, and a `number` above all others."""
        numbers = self._numbers if self._bound else {}  # the first map may serve as every stream's beginning
        if numbers and next(reversed(numbers.values())) >= self._bound:  # another map went on from here
            numbers = self._own()
        numbers[key] = number
        return Index(numbers, number + 1)
