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
    assert b"".join(undo.decode(encoded[at : at + size]) for at in range(0, len(encoded), size)) == data


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
        undo.decode(b"data: this is plain text, and enough of it to be sure that it is nothing else\n\n")


@pytest.mark.parametrize(("coding", "modules"), [("br", ["brotli", "brotlicffi"]), ("zstd", ["zstandard"])])
def test_a_package_that_is_missing(coding: str, modules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [*modules, "compression.zstd"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FramingError, match=f"{coding!r} needs a package"):
        decoder(coding)
