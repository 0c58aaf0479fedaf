"""The content hash in C against its twin in Python, with every number of lanes that the processor has."""

from __future__ import annotations

import ctypes
import hashlib
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tessera.content import PIECE, content
from tests.nodriver.shim.programs import FOLDER, PRELOAD, sanitized
from tools import native

SOURCES = [PRELOAD / name for name in ("blake2b.c", "content.c", "blake2b.h", "blake2b_lanes.h", "content.h")]
BLOCK = 128
LANES = (1, 2, 4, 8)
SECONDS = 60

BYTES = random.Random(1).randbytes(20 * PIECE)
"""What is hashed are slices of it."""

AROUND_LIMITS = st.builds(lambda pieces, blocks, rest: max(pieces * PIECE + blocks * BLOCK + rest, 0),
                          st.integers(0, 18), st.integers(-2, 2), st.integers(-1, 1))
SIZES = st.one_of(AROUND_LIMITS, st.integers(0, 3 * BLOCK), st.integers(0, 19 * PIECE))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    place = tmp_path_factory.mktemp("content") / "content.so"
    made = native.linked(place, "compile the content hash", [*SOURCES, FOLDER / "content_entry.c"], "",
                         [f"-I{PRELOAD}"], "It is C11 for x86-64.")
    return ctypes.CDLL(str(made))


def plain(library: ctypes.CDLL, data: bytes, first: int, digest_bytes: int) -> bytes:
    digest = ctypes.create_string_buffer(digest_bytes)
    sizes = [ctypes.c_size_t(size) for size in (len(data), first, digest_bytes)]
    library.plain(data, *sizes, digest)
    return digest.raw


def in_parts(library: ctypes.CDLL, data: bytes, parts: Sequence[int], lanes: int, total: int) -> bytes | None:
    """None when the hash says that it is not of as many bytes as promised."""
    if lanes > library.lanes_here():
        pytest.skip(f"the processor does not have {lanes} lanes")
    digest = ctypes.create_string_buffer(32)
    lengths = (ctypes.c_size_t * len(parts))(*parts)
    done = library.in_parts(data, lengths, ctypes.c_size_t(len(parts)), ctypes.c_uint64(total), lanes, digest)
    return digest.raw if done else None


def test_the_vector_of_the_rfc(library: ctypes.CDLL) -> None:
    """RFC 7693, appendix A."""
    expected = ("ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
                "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923")
    assert plain(library, b"abc", 3, 64).hex() == expected


@given(size=st.integers(0, 5 * BLOCK), first=st.integers(0, 5 * BLOCK), digest_bytes=st.integers(1, 64))
@example(size=BLOCK, first=BLOCK, digest_bytes=32)
@example(size=3 * BLOCK, first=BLOCK, digest_bytes=32)
def test_plain_hash_is_that_of_the_standard_library(library: ctypes.CDLL, size: int, first: int,
                                                    digest_bytes: int) -> None:
    expected = hashlib.blake2b(BYTES[:size], digest_size=digest_bytes).digest()
    assert plain(library, BYTES[:size], min(first, size), digest_bytes) == expected


def test_the_definition() -> None:
    """Written out once more, for a last piece that is shorter and for no bytes."""
    def digest(data: bytes, person: bytes = b"") -> bytes:
        return hashlib.blake2b(data, digest_size=32, person=person).digest()

    person = b"tessera content\0"
    assert content(b"") == digest(bytes(8), person)
    data = BYTES[: 65536 + 3]
    assert content(data) == digest(b"\x03\0\1\0\0\0\0\0" + digest(data[:65536]) + digest(data[65536:]), person)


@pytest.mark.parametrize("data", [np.zeros((0, 3)), np.arange(12, dtype=np.float64).reshape(3, 4)], ids=["none", "3x4"])
def test_arrays_are_their_bytes(data: np.ndarray) -> None:
    assert content(data.data) == content(data.tobytes()) == content(bytearray(data.tobytes()))


@given(start=st.integers(0, 70), size=SIZES)
def test_bytes_at_once(library: ctypes.CDLL, start: int, size: int) -> None:
    data = BYTES[start : start + size]
    digest = ctypes.create_string_buffer(32)
    library.at_once(data, ctypes.c_size_t(len(data)), digest)
    assert digest.raw == content(data)


@pytest.mark.parametrize("lanes", LANES)
@given(size=SIZES, parts=st.lists(SIZES, max_size=6))
def test_bytes_in_parts(library: ctypes.CDLL, lanes: int, size: int, parts: list[int]) -> None:
    rest = size
    for place, part in enumerate(parts):
        parts[place] = min(part, rest)
        rest -= parts[place]
    assert in_parts(library, BYTES, [*parts, rest], lanes, size) == content(BYTES[:size])


@pytest.mark.parametrize("lanes", LANES)
def test_rows_of_a_copy(library: ctypes.CDLL, lanes: int) -> None:
    data = BYTES[: 300 * 700]
    assert in_parts(library, data, [700] * 300, lanes, len(data)) == content(data)


@given(total=SIZES, off=st.integers(-3, 3).filter(bool))
def test_not_as_many_bytes_as_promised(library: ctypes.CDLL, total: int, off: int) -> None:
    added = total + off
    if added >= 0:
        assert in_parts(library, BYTES, [added], 1, total) is None
        expected = content(BYTES[:total]) if off < 0 else None
        assert in_parts(library, BYTES, [added, max(-off, 0)], 1, total) == expected


def test_nothing_happens_when_the_library_is_loaded(library: ctypes.CDLL) -> None:
    """The compiler's own question for the processor would bring a function that runs before the program."""
    table = subprocess.run(["readelf", "-sW", library._name], capture_output=True, text=True, check=True).stdout
    assert "compress_8" in table
    assert "__cpu" not in table and "IFUNC" not in table
    needed = subprocess.run(["readelf", "-dW", library._name], capture_output=True, text=True, check=True).stdout
    assert [line.split("[")[1] for line in needed.splitlines() if "(NEEDED)" in line] == ["libc.so.6]"]


def test_limits_with_sanitizers(tmp_path: Path) -> None:
    program = sanitized("content_limits", ["content.c", "blake2b.c"], tmp_path)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
