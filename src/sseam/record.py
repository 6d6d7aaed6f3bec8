"""Recordings made and read: `sseam.recording.record` under its short name."""

from .recording.record import *  # noqa: F403
from .recording.record import __all__ as __all__
