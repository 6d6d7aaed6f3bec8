"""Enumerations for the hot paths."""

from __future__ import annotations

import enum
from typing import TypeVar

__all__ = ["quick"]

E = TypeVar("E", bound=enum.Enum)


def quick(kind: type[E]) -> type[E]:
    """The enumeration with members that are found as plain attributes and hashed by identity.

    Python 3.11 looks a member up through a descriptor, and every version hashes it by its name, both in
    Python code: a reducer would spend a third of a block's start on that.
    """
    for member in kind:
        type.__setattr__(kind, member.name, member)
    kind.__hash__ = object.__hash__
    return kind
