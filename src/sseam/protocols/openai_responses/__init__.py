"""OpenAI Responses."""

from .dialects import DEVIATIONS, DIALECTS
from .order import last_number
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
    "finish",
    "initial",
    "last_number",
    "read_response",
    "reduce",
]
