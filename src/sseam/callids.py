"""Ids of tool calls that a service takes, made from those of another."""

from __future__ import annotations

import hashlib
import re

import msgspec

__all__ = ["IdRule", "wire_id"]


class IdRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which ids of tool calls a service takes.

    Attributes:
        alphabet: inside of a regular expression's brackets; "" means any character.
        max_length: in characters; 0 means any.
        exact: the length must be `max_length`.
        unique: an id may be used once in the whole conversation, not only once in a turn.
    """

    alphabet: str = ""
    max_length: int = 0
    exact: bool = False
    unique: bool = False

    def accepts(self, id: str) -> bool:
        """Whether the service takes this id."""
        size = self.max_length or len(id)
        fits = len(id) == size if self.exact else len(id) <= size
        return fits and (not self.alphabet or re.fullmatch(f"[{self.alphabet}]+", id) is not None)


def wire_id(id: str, rule: IdRule, taken: set[str]) -> str:
    """`id`, or the first id made from it that the rule accepts and that is not `taken`; it is then added to these.

    Made ids depend on `id` and on which are taken, so equal histories give equal ids.
    """
    candidate, attempt = id, 0
    while candidate in taken or not rule.accepts(candidate):
        candidate = _minted(id, attempt, rule)
        attempt += 1
    taken.add(candidate)
    return candidate


def _minted(id: str, attempt: int, rule: IdRule) -> str:
    digest = hashlib.sha256(f"{attempt}:{id}".encode()).hexdigest()
    if rule.exact:
        return digest[: rule.max_length]
    readable = re.sub(f"[^{rule.alphabet}]", "", id) if rule.alphabet else id
    length = max((rule.max_length or 64) - 13, 0)
    return f"{readable[:length]}_{digest[:12]}"
