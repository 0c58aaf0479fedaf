"""How far images of device code reach, as the preload library finds out before it sends them to the reader."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nodriver.shim.programs import sanitized

UNKNOWN, PTX, CUBIN, FATBIN = range(4)
TEXT = b"// a remark\n/* and\n another */\n.version 8.0\n.target sm_80\n"
LZ4, ZSTANDARD = 0x2000, 0x8000
Image = tuple[int, int, int, int]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sanitized("image_extents", ["image.c"], tmp_path_factory.mktemp("images"))


def look(program: Path, images: Sequence[bytes], limit: int = 0) -> list[Image]:
    """Kind, bytes, texts that are not packed and their bytes, for each image."""
    told = b"".join([struct.pack("<Q", len(image)) + image for image in images])
    done = subprocess.run([program, str(limit)], input=told, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in lines]


def entry(kind: int, payload: bytes, flags: int = 0, header: int = 64) -> bytes:
    fields = struct.pack("<HHIQIIIIQQQQ", kind, 0x101, header, len(payload), 0, 0, 0, 80, 0, flags, 0, 0)
    return fields + bytes(header - len(fields)) + payload


def fatbin(*entries: bytes, version: int = 1, header: int = 16, extra: int = 0) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, version, header, len(body) + extra) + bytes(header - 16) + body


def elf(sections: Sequence[tuple[int, bytes]], *, many: bool = False, last: bytes = b"") -> bytes:
    """An ELF file with its sections' contents, then their headers, then ``last``; ``many``: their number stands
    where it does when there are too many."""
    content, table = bytearray(64), [(0, 0, 0)]
    for kind, data in sections:
        table.append((kind, len(content), len(data)))
        if kind != 8:
            content += data
    content += bytes(-len(content) % 8)
    count = len(table)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 190, 1, 0, 0, len(content), 0, 64, 56, 0, 64,
                       0 if many else count, 0)
    if many:
        table[0] = (0, 0, count)
    headers = b"".join([struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, at, size, 0, 0, 0, 0) for kind, at, size in table])
    return bytes(head + content[64:] + headers + last)


def test_texts_end_with_a_zero_byte(program: Path) -> None:
    texts = [TEXT + b"\0", b".version 8.0\0", b" \t\n.version 1\0rest", b"/\0", b"\0", b"//x\0", b"/* .version 8.0\0",
             b".versio\0", b"x.version 8.0\0"]
    assert look(program, texts) == [(PTX, len(TEXT), 0, 0), (PTX, 12, 0, 0), (PTX, 13, 0, 0)] + [(0, 0, 0, 0)] * 6


def test_texts_of_known_size_need_no_zero_byte(program: Path) -> None:
    assert look(program, [TEXT, b".version", b"."], 1) == [(PTX, len(TEXT), 0, 0), (PTX, 8, 0, 0), (UNKNOWN, 1, 0, 0)]


def test_machine_code_ends_with_its_last_part(program: Path) -> None:
    plain = elf([(1, b"code"), (8, b"x" * 100000)])
    parts = [plain, elf([(1, b"code")] * 300, many=True), elf([])]
    assert look(program, parts) == [(CUBIN, len(part), 0, 0) for part in parts]
    behind = bytearray(elf([(1, b"code")], last=b"more"))
    place = len(behind) - 4  # the last section stands behind the headers
    struct.pack_into("<QQ", behind, place - 64 + 24, place, 4)
    assert look(program, [bytes(behind)]) == [(CUBIN, len(behind), 0, 0)]


def test_damaged_machine_code_is_not_read(program: Path) -> None:
    plain = bytearray(elf([(1, b"code")]))
    wrong = []
    for place, code, value in ((40, "<Q", 1 << 60), (58, "<H", 65), (4, "<B", 1)):
        damaged = bytearray(plain)
        struct.pack_into(code, damaged, place, value)
        wrong.append(bytes(damaged))
    struct.pack_into("<Q", plain, len(plain) - 64 + 32, 1 << 63)
    assert look(program, [*wrong, bytes(plain)]) == [(CUBIN, 0, 0, 0)] * 4


def test_containers_say_how_long_they_are(program: Path) -> None:
    whole = fatbin(entry(2, elf([(1, b"code")])), entry(1, TEXT), entry(1, b"packed", LZ4),
                   entry(1, b"packed", ZSTANDARD), entry(1, TEXT + bytes(5), header=80))
    assert look(program, [whole, b"wrapper1", b"wrapper2", b"wrapper3", fatbin(), fatbin(version=2)]) == [
        *[(FATBIN, len(whole), 2, 2 * len(TEXT))] * 3, (UNKNOWN, 0, 0, 0), (FATBIN, 16, 0, 0), (FATBIN, 0, 0, 0)]


def test_only_containers_are_wrapped(program: Path) -> None:
    assert look(program, [TEXT + b"\0", b"wrapper1"])[1] == (UNKNOWN, 0, 0, 0)


def _changed(image: bytes) -> Iterator[bytes]:
    for place in range(min(len(image), 160)):
        for value in (0, 1, 0x7F, 0xFF):
            yield image[:place] + bytes([value]) + image[place + 1:]


def test_damage_never_makes_it_read_behind_a_known_end(program: Path) -> None:
    images = [fatbin(entry(1, TEXT), entry(2, b"code")), elf([(1, b"code")]), TEXT]
    look(program, [changed for image in images for changed in _changed(image)], 1)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=50))
def test_any_bytes_of_known_size(program: Path, images: list[bytes]) -> None:
    images = [image for image in images if not image.startswith(b"wrapper")] or [b"x"]
    assert [size for _, size, _, _ in look(program, images, 1)] == [len(image) for image in images]
