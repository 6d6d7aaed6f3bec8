"""OpenAI Chat Completions and its dialects."""

from .dialects import DEVIATIONS, DIALECTS, dialect_for
from .reducer import NAME, STOP_REASONS, TITLE, State, finish, initial, reduce
from .wire import decode, read_response

__all__ = [
    "DEVIATIONS",
    "DIALECTS",
    "NAME",
    "STOP_REASONS",
    "TITLE",
    "State",
    "decode",
    "dialect_for",
    "finish",
    "initial",
    "read_response",
    "reduce",
]
