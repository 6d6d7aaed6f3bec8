"""The body of a response until it is known what it is: in a content coding, a stream of events, or one JSON value."""

from __future__ import annotations

from collections.abc import Iterator

from . import response as http
from .encoding import Decoder, decoder
from .errors import FramingError, SseamError
from .protocols import ARRAYS
from .response import Response

__all__ = ["Body"]

# As long as the longest frame: an image may be in it.
_LONGEST = 64 << 20


class Body:
    """What of a body's chunks goes to the parser, and what is gathered instead.

    Args:
        protocol: some stream JSON arrays, which others only have as a whole.
        response: whose body it is; None where nothing is known but the bytes.

    Attributes:
        plain: the rest goes to the parser as it comes.
        is_refusal: it is an error, or something that cannot be an answer.
        is_full: of a refusal as much has come as is looked at.

    Raises:
        FramingError: a content coding that is not known; `ApiError` where it is that of a refusal.
    """

    __slots__ = ("_decoder", "_looked", "_protocol", "_response", "_whole", "is_refusal", "plain")

    def __init__(self, protocol: str, response: Response | None = None) -> None:
        self._protocol = protocol
        self._response = response
        self._decoder: Decoder | None = None
        self._looked = False  # the first byte was looked at
        self._whole: bytearray | None = None
        self.plain = response is None
        self.is_refusal = False
        if response is None:
            return
        kind = http.reads_as(response)
        self.is_refusal = kind == "refusal"
        if kind != "events" and not (kind == "body" and protocol in ARRAYS):
            self._whole = bytearray()
        try:
            self._decoder = decoder(response.headers.get("content-encoding", ""))
        except FramingError as error:
            raise self._undecodable(error) from error

    @property
    def whole(self) -> bytes | None:
        """What was gathered, None where nothing is."""
        return None if self._whole is None else bytes(self._whole)

    @property
    def is_full(self) -> bool:
        return self.is_refusal and len(self._whole or b"") > http.MAX_ERROR_BODY

    def take(self, chunk: bytes) -> Iterator[bytes]:
        """What of a chunk goes to the parser, in pieces.

        Raises:
            FramingError: its coding is damaged, or it is longer than any answer; `ApiError` where it is a refusal.
        """
        if self._decoder is None:
            yield from self._sort(chunk)
            return
        try:
            for piece in self._decoder.decode(chunk):
                yield from self._sort(piece)
                if self.is_full:
                    return
        except FramingError as error:
            raise self._undecodable(error) from error

    def _sort(self, piece: bytes) -> Iterator[bytes]:
        if not self._looked and self._whole is None:
            self._look_at(piece)
        if self._whole is None:
            self.plain = self._looked and self._decoder is None
            yield piece
            return
        self._whole += piece
        if not self.is_refusal and len(self._whole) > _LONGEST:
            raise FramingError(f"the body is longer than {_LONGEST:,} bytes, and no event stream")

    def _look_at(self, piece: bytes) -> None:
        """A body that begins as JSON is one, unless the protocol streams arrays."""
        first = piece.lstrip(b" \t\r\n\xef\xbb\xbf")[:1]
        self._looked = bool(first)
        if first == b"{" or (first == b"[" and self._protocol not in ARRAYS):
            self._whole = bytearray()

    def _undecodable(self, fault: FramingError) -> SseamError:
        """The error for a fault of the coding: of a refusal it is the service's."""
        if self._response is None or not self.is_refusal:
            return fault
        return http.undecodable(self._protocol, self._response, fault)
