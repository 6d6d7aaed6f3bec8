"""Streaming wire protocols of language-model APIs, read without a vendor's SDK."""
