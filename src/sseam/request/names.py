"""Names of tools: which ones a service takes, and what it reads in place of the others."""

from __future__ import annotations

import re

import msgspec

__all__ = ["NameRule"]


class NameRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which names of tools a service takes.

    Attributes:
        alphabet: inside of a regular expression's brackets.
        first: the same for the first character; "": whatever `alphabet` has.
        max_length: in characters.
    """

    alphabet: str
    first: str = ""
    max_length: int

    def accepts(self, name: str) -> bool:
        """Whether a tool of this name can be declared."""
        first = self.first or self.alphabet
        return len(name) <= self.max_length and re.fullmatch(f"[{first}][{self.alphabet}]*", name) is not None

    def replayed(self, name: str) -> str:
        """The name of a call that was made: whatever it was, the service wants to read of it."""
        if self.accepts(name):
            return name
        plain = re.sub(f"[^{self.alphabet}]", "_", name)
        if re.match(f"[{self.first or self.alphabet}]", plain) is None:
            plain = f"_{plain}"
        return plain[: self.max_length]
