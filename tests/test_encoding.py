"""Content codings, undone as the bytes come."""

from __future__ import annotations

import gzip
import sys
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sseam.encoding import decoder
from sseam.errors import FramingError

ENCODE = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]),
    "deflate": zlib.compress,
    "DEFLATE": lambda data: _bare(data),
    "br": brotli.compress,
    "zstd": lambda data: zstandard.compress(data[:5]) + zstandard.compress(data[5:]),
    "gzip, identity": gzip.compress,
    "gzip,zstd": lambda data: zstandard.compress(gzip.compress(data)),
}


def _bare(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize("coding", ENCODE)
@given(data=st.binary(min_size=1, max_size=300), size=st.integers(1, 40))
def test_whatever_the_cuts(coding: str, data: bytes, size: int) -> None:
    encoded = ENCODE[coding](data)
    undo = decoder(coding)
    assert undo is not None
    assert (
        b"".join(piece for at in range(0, len(encoded), size) for piece in undo.decode(encoded[at : at + size])) == data
    )


@pytest.mark.parametrize("coding", ["", "identity", " Identity ", "identity, identity", ","])
def test_nothing_to_undo(coding: str) -> None:
    assert decoder(coding) is None


@pytest.mark.parametrize("coding", ["compress", "snappy", "gzip, aes128gcm", "gzipx"])
def test_a_coding_that_is_not_known(coding: str) -> None:
    with pytest.raises(FramingError, match="is not known"):
        decoder(coding)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_what_is_not_of_the_coding(coding: str) -> None:
    undo = decoder(coding)
    assert undo is not None
    with pytest.raises(FramingError, match=f"content-encoding {coding}"):
        list(undo.decode(b"data: this is plain text, and enough of it to be sure that it is nothing else\n\n"))


@pytest.mark.parametrize(("coding", "modules"), [("br", ["brotli", "brotlicffi"]), ("zstd", ["zstandard"])])
def test_a_package_that_is_missing(coding: str, modules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [*modules, "compression.zstd"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FramingError, match=f"{coding!r} needs a package"):
        decoder(coding)


DATA = b"".join(b"data: %d\n\n" % number for number in range(300))
DAMAGED = {
    "gzip": [gzip.compress(DATA)[:-8] + bytes(8), gzip.compress(DATA) + b"more"],
    "deflate": [zlib.compress(DATA)[:-4] + bytes(4)],
    "br": [brotli.compress(DATA) + b"more"],
    "zstd": [zstandard.compress(DATA) + b"more"],
    "gzip,zstd": [zstandard.compress(gzip.compress(DATA)[:-8] + bytes(8))],
}


def undone(coding: str, data: bytes, size: int) -> tuple[bytes, bool]:
    """What comes of chunks of a size, and whether a fault ended it."""
    undo = decoder(coding)
    assert undo is not None
    got: list[bytes] = []
    try:
        for at in range(0, len(data), size):
            got.extend(undo.decode(data[at : at + size]))
    except FramingError:
        return b"".join(got), True
    return b"".join(got), False


@pytest.mark.parametrize("coding", DAMAGED)
def test_what_came_before_a_fault_is_given_whatever_the_cuts(coding: str) -> None:
    for damaged in DAMAGED[coding]:
        for size in (1, 7, 50, 1_000, len(damaged)):
            assert undone(coding, damaged, size) == (DATA, True)


@pytest.mark.parametrize("coding", ENCODE)
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), size=st.integers(2, 400))
def test_a_fault_anywhere_gives_the_same_whatever_the_cuts(coding: str, place: float, value: int, size: int) -> None:
    damaged = bytearray(ENCODE[coding](DATA))
    damaged[int(place * len(damaged))] = value
    assert undone(coding, bytes(damaged), size) == undone(coding, bytes(damaged), 1)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip,gzip"])
def test_few_bytes_that_stand_for_very_many_come_in_pieces(coding: str) -> None:
    much = bytes(30_000_000)
    encoded = ENCODE[coding](much) if coding in ENCODE else gzip.compress(gzip.compress(much))
    undo = decoder(coding)
    assert undo is not None
    sizes = [len(piece) for piece in undo.decode(encoded)]
    assert sum(sizes) == len(much)
    assert max(sizes) <= 3 << 20


def test_codings_over_codings_have_an_end() -> None:
    assert decoder("gzip, br, zstd") is not None
    with pytest.raises(FramingError, match="names 4 codings, of which at most 3 are undone"):
        decoder("gzip, " * 4)
