"""Recordings of streams: made from a client's own bytes, damaged by name, played back and served."""
