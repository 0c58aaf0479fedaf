"""Images as programs hand them over: what PTX is found in them, for which device. They are inputs of links here, as a
link of one image gives its PTX back."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from ptxparse.parser import NEWEST_VERSION
from tessera.environment import DECREE
from tessera.packed import Packing
from tests.nodriver.driver.client import run

FOLDER = Path(__file__).resolve().parent / "images"
"""One kernel, ``twice``, as nvcc 13.0 makes it with each of its modes of compression; targets: SASS sm_75, PTX 75, 80,
90a, 100f."""

MODES = ("none", "size", "speed", "default")
CUBIN, PTX, FATBIN = 0, 1, 2
OK, INVALID_VALUE, INVALID_IMAGE, NO_BINARY, NOT_SUPPORTED = 0, 1, 200, 209, 801
INVALID_PTX, UNSUPPORTED_VERSION, FILE_NOT_FOUND = 218, 222, 301

GIVE = """
assert cuda.cuInit(0) == 0
def give(kind, data, device=0, file=False):
    context, link, log = c_void_p(), c_void_p(), create_string_buffer(2000)
    device = value("cuDeviceGet", c_int, device)
    assert cuda.cuDevicePrimaryCtxRetain(byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
    options, values = (c_int * 2)(5, 6), (c_void_p * 2)(ctypes.addressof(log), 2000)
    assert cuda.cuLinkCreate_v2(2, options, values, byref(link)) == 0
    if file:
        result = cuda.cuLinkAddFile_v2(link, kind, data, 0, None, None)
    else:
        result = cuda.cuLinkAddData_v2(link, kind, data, c_size_t(len(data)), b"name", 0, None, None)
    image, size = c_void_p(), c_size_t()
    text = ""
    if result == 0:
        assert cuda.cuLinkComplete(link, byref(image), byref(size)) == 0
        text = ctypes.string_at(image).decode()
        assert size.value == len(text) + 1
    assert cuda.cuLinkDestroy(link) == 0
    return [result, text, log.value.decode()]
"""


@dataclass
class Given:
    result: int
    text: str
    log: str
    errors: str

    @property
    def target(self) -> str:
        return self.text.split(".target ")[1].split()[0] if self.text else ""


def give(kind: int, data: bytes, devices: str = "A100-80G", **variables: str) -> Given:
    """What comes of one input of a link on the first of some devices."""
    done = run(GIVE + f"show(give({kind}, {data!r}))", devices, **variables)
    return Given(*done.shown, done.errors)


def targets(data: bytes, devices: tuple[str, ...]) -> list[str | int]:
    """The target of the PTX that each device gets, or the result."""
    code = GIVE + f"show([give({FATBIN}, {data!r}, n) for n in range({len(devices)})])"
    shown = run(code, ",".join(devices)).shown
    return [Given(*one, "").target or one[0] for one in shown]


def fatbin(mode: str) -> bytes:
    return (FOLDER / f"{mode}.fatbin").read_bytes()


def kernel(version: str = "8.0", target: str = "sm_80") -> bytes:
    return f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n".encode()


@dataclass
class Entry:
    """An entry of a container; ``None`` for lengths stands for the right ones."""

    kind: int
    data: bytes
    target: int = 80
    flags: int = 0x11
    packed: int = 0
    unpacked: int = 0
    header: int = 64
    length: int | None = None

    def encode(self) -> bytes:
        length = len(self.data) if self.length is None else self.length
        fields = (self.kind, 0x101, self.header, length, self.packed, 0, 0, 8, self.target, 0, 0, self.flags, 0,
                  self.unpacked)
        return struct.pack("<HHIQIIHHIIIQQQ", *fields) + self.data


def container(*entries: Entry, magic: int = 0xBA55ED50, version: int = 1, header: int = 16, more: int = 0) -> bytes:
    body = b"".join(entry.encode() for entry in entries)
    return struct.pack("<IHHQ", magic, version, header, len(body) + more) + body


@pytest.mark.parametrize("mode", MODES)
def test_the_text_that_suits_a_device_best(mode: str) -> None:
    devices = ("T4", "A100-80G", "L40S", "H100", "B200", "RTX5090")
    assert targets(fatbin(mode), devices) == ["sm_75", "sm_80", "sm_80", "sm_90a", "sm_100f", "sm_80"]


def test_texts_are_whole() -> None:
    texts = {give(FATBIN, fatbin(mode)).text.strip("\n") for mode in MODES}
    assert len(texts) == 1
    text = texts.pop()
    assert text.startswith(".version 9.0") and text.endswith("}") and ".entry twice" in text


def test_what_was_unpacked_once_is_on_disk() -> None:
    service = "import pathlib; before = set(pathlib.Path(os.environ['SOFTGPU_CACHE']).glob('*.ptx'));"
    code = service + GIVE + f"""
first = give({FATBIN}, {fatbin("size")!r})
os.environ["XDG_RUNTIME_DIR"] = "/nowhere"
ctypes.CDLL(None).setenv(b"SOFTGPU_PYTHON", b"/nowhere/python", 1)
show([give({FATBIN}, {fatbin("size")!r}) == first, bool(before) or len(first[1])])
"""
    assert run(code).shown[0] is True


def test_containers_behind_each_other() -> None:
    nothing, text = container(Entry(2, b"\x7fELF", 75)), container(Entry(1, kernel()))
    assert give(FATBIN, nothing + container() + text).target == "sm_80"
    assert give(FATBIN, nothing + b"\0" * 64).result == NO_BINARY


@pytest.mark.parametrize(("data", "result"), [
    (kernel(), OK), (b"// nvcc\n/* of\n course */\r\n\t" + kernel(), OK), (kernel() + b"\0junk", OK),
    (kernel()[:-2], INVALID_PTX), (b"\x7fELF", INVALID_PTX), (b"hello", INVALID_PTX), (b".versions", INVALID_PTX),
    (b"/", INVALID_PTX), (b"/*", INVALID_PTX), (b".version 8.0", INVALID_PTX),
    (kernel("8"), INVALID_PTX), (kernel(".0"), INVALID_PTX), (kernel("{}.{}".format(*NEWEST_VERSION)), OK),
    (kernel(f"{NEWEST_VERSION[0]}.{NEWEST_VERSION[1] + 1}"), UNSUPPORTED_VERSION),
    (kernel("10.0"), UNSUPPORTED_VERSION), (kernel(target="sm_86"), NO_BINARY), (kernel(target="sm_90a"), NO_BINARY),
    (kernel(target="compute_80"), INVALID_PTX),
    (kernel(target="sm_80, debug"), OK), (kernel(target="sm_75"), OK), (kernel("8.0 .target sm_70\n//"), OK),
])  # fmt: skip
def test_texts(data: bytes, result: int) -> None:
    given = give(PTX, data)
    assert given.result == result
    assert bool(given.log) == bool(result), "the reason is in the log of the link"
    assert given.text == (data.split(b"\0")[0].decode() if not result else "")


def test_images_that_are_none() -> None:
    good = fatbin("none")
    size, text = len(good), Entry(1, kernel())
    for name, data in {
        "nothing": b"\x50", "magic alone": good[:4], "header alone": good[:15], "cut": good[:-1],
        "other version": container(text, version=2), "small header": container(text, header=8),
        "large header": container(text, header=60000), "longer": container(text, more=8),
        "endless": struct.pack("<IHHQ", 0xBA55ED50, 1, 16, (1 << 64) - 1) + bytes(100),
        "half an entry": container(text, Entry(1, b""))[:-1], "rest": container(text, more=4) + b"abcd",
        "entry too long": container(Entry(1, kernel(), length=size)),
        "entry endless": container(Entry(1, kernel(), length=(1 << 64) - 64)),
        "entry header small": container(Entry(1, kernel(), header=16)),
        "entry header large": container(Entry(1, kernel(), header=1 << 31)),
        "packed longer than it is": container(Entry(1, b"x" * 8, flags=0x8011, packed=9, unpacked=10)),
        "no frame": container(Entry(1, b"x" * 8, flags=0x8011, packed=8, unpacked=10)),
        "no block": container(Entry(1, b"\xff" * 8, flags=0x2011, packed=8, unpacked=10)),
        "huge": container(Entry(1, b"x" * 8, flags=0x8011, packed=8, unpacked=1 << 62)),
        "wrapper": struct.pack("<IIQQ", 0x466243B1, 1, 0, 0), "text": kernel(),
    }.items():  # fmt: skip
        given = give(FATBIN, data)
        assert (given.result, given.text) == (INVALID_IMAGE, ""), name


def test_announced_sizes_hold() -> None:
    lz4_block, zstandard = pytest.importorskip("lz4.block"), pytest.importorskip("zstandard")
    for flags, packed in ((0x2011, lz4_block.compress(kernel() * 100, store_size=False)),
                          (0x8011, zstandard.compress(kernel() * 100)),
                          (0x8011, zstandard.ZstdCompressor(write_content_size=False).compress(kernel() * 100))):
        for announced, result in ((len(kernel()) * 100, INVALID_PTX), (100, INVALID_IMAGE), (1 << 20, INVALID_IMAGE)):
            entry = Entry(1, packed, flags=flags, packed=len(packed), unpacked=announced)
            assert give(FATBIN, container(entry)).result == result, "a hundred modules in one are bad PTX"


def test_containers_without_a_text_for_the_device() -> None:
    given = give(FATBIN, container(Entry(2, b"\x7fELF", 75), Entry(1, kernel(), 90), Entry(1, kernel(), 80, 0x100011)))
    assert given.result == OK and not given.errors
    given = give(FATBIN, container(Entry(2, b"\x7fELF", 75), Entry(1, kernel(), 90), Entry(8, b"", 75)))
    assert given.result == NO_BINARY
    expected = "capability 8.0; it has: sm_75 compute_90 other_75; compile with PTX, as in -gencode arch=compute_80"
    assert expected in given.errors


def test_cubins_need_a_decree(tmp_path: Path) -> None:
    cubin = (FOLDER / "sm_80.cubin").read_bytes()
    given = give(CUBIN, cubin)
    assert given.result == NO_BINARY and "compile with PTX" in given.errors
    given = give(CUBIN, cubin, **{DECREE.name: str(tmp_path)})
    digest = hashlib.sha256(cubin).hexdigest()
    assert given.result == NO_BINARY and f"no file {digest}.ptx" in given.errors
    (tmp_path / f"{digest}.ptx").write_bytes(kernel())
    for kind, data in ((CUBIN, cubin), (CUBIN, cubin + bytes(8)), (FATBIN, container(Entry(2, cubin + bytes(3))))):
        given = give(kind, data, **{DECREE.name: str(tmp_path)})
        assert (given.result, given.text) == (OK, kernel().decode())
    assert give(FATBIN, container(Entry(2, cubin, 90)), **{DECREE.name: str(tmp_path)}).result == NO_BINARY
    for cut in (10, 63, 64, 1000):
        assert give(CUBIN, cubin[:cut], **{DECREE.name: str(tmp_path)}).result in (INVALID_IMAGE, NO_BINARY)


def test_cubins_in_packed_entries_have_decrees_too(tmp_path: Path) -> None:
    cubin = give_cubin(fatbin("none"))
    (tmp_path / f"{hashlib.sha256(cubin).hexdigest()}.ptx").write_bytes(kernel(target="sm_70"))
    given = give(FATBIN, fatbin("size"), "T4", **{DECREE.name: str(tmp_path)})
    assert given.target == "sm_70"


def give_cubin(data: bytes) -> bytes:
    """The machine code at the start of a container that is not packed."""
    header, length = struct.unpack_from("<IQ", data, 20)
    return data[16 + header:16 + header + length]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(fatbin("speed"))
    cases = [(FATBIN, bytes(path)), (PTX, bytes(tmp_path)), (PTX, bytes(tmp_path / "none")), (PTX, b"/dev/null")]
    shown = run(GIVE + f"show([give(kind, path, file=True) for kind, path in {cases!r}])").shown
    assert [one[0] for one in shown] == [OK, FILE_NOT_FOUND, FILE_NOT_FOUND, FILE_NOT_FOUND]
    assert shown[0][1].strip().startswith(".version 9.0")


def test_packings_are_those_of_the_service() -> None:
    assert [packing.value for packing in Packing] == [1, 2]
