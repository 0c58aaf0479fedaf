"""Modules, libraries and links: their images, and what is in them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from shim import tails
from shim.layout import lib
from shim.wire import Kind, Record
from softgpu.instrument import Fail
from tessera.content import content as digest
from tests.nodriver.shim.observed import symbol
from tests.nodriver.shim.things import Seen, see

TEXT = """.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .b64 word;
.visible .entry add(.param .u64 a, .param .u8 b, .param .align 16 .b8 c[24], .param .f32 d) { ret; }
.visible .entry none() { ret; }
"""
LAYOUT = [(0, 8), (8, 1), (16, 24), (40, 4)]
HEAD = f"text = {TEXT.encode()!r}\n" + """
def launch(function, count=4):
    values = [(ctypes.c_uint8 * 24)(*range(n, n + 24)) for n in range(count)]
    arguments = (c_void_p * (count or 1))(*[ctypes.addressof(value) for value in values])
    ok("cuLaunchKernel", c_void_p(function), 1, 1, 1, 1, 1, 1, 0, None, arguments if count else None, None)
"""


def contents(seen: Seen) -> dict[bytes, bytes]:
    """What was sent, by its hash, which is looked at."""
    whole: dict[bytes, bytearray] = {}
    for record in seen.observed.records:
        if record.kind is Kind.DATA:
            data = whole.setdefault(record.body.content, bytearray())
            assert record.body.offset == len(data)
            data += tails.data(record)
    assert all(digest(bytes(data)) == name for name, data in whole.items())
    return {name: bytes(data) for name, data in whole.items()}


def records(seen: Seen, kind: Kind) -> list[Record]:
    return [record for record in seen.observed.records if record.kind is kind]


def fatbin(text: str, flags: int = 0) -> bytes:
    payload = text.encode() + bytes(-len(text) % 8)
    entry = struct.pack("<HHIQIIIIQQQQ", 1, 0x101, 64, len(payload), 0, 0, 0x70000, 70, 0, flags, 0, 0) + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry


@pytest.mark.parametrize("function", ["cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary",
                                      "cuLibraryLoadData"])
@pytest.mark.parametrize("form", ["text", "container", "wrapper"])
def test_images_are_sent(function: str, form: str) -> None:
    more = {"cuModuleLoadDataEx": ", 0, None, None", "cuLibraryLoadData": ", None, None, 0, None, None, 0"}
    seen = see(HEAD + f"""
container = {fatbin(TEXT)!r}
held = create_string_buffer(container, len(container))
class Wrapper(ctypes.Structure):
    _fields_ = [("magic", c_uint), ("version", c_uint), ("container", c_void_p), ("more", c_void_p)]
wrapper = Wrapper(0x466243b1, 1, ctypes.addressof(held), None)
image = {{"text": text, "container": held, "wrapper": byref(wrapper)}}[{form!r}]
show([made({function!r}, image{more.get(function, "")}) for _ in range(2)] + [context])
""")
    *handles, context = seen.shown
    image = TEXT.encode() if form == "text" else fatbin(TEXT)
    assert contents(seen) == {digest(image): image}
    assert len(records(seen, Kind.DATA)) == 1  # once for both
    library = function == "cuLibraryLoadData"
    for record, handle in zip(records(seen, Kind.MODULE), handles, strict=True):
        body = record.body
        assert symbol(record) == function
        assert body == (handle, 0 if library else context, int(library), 1 if form == "text" else 3, len(image),
                        digest(image), 0, 0)


@pytest.mark.parametrize("function", ["cuModuleLoad", "cuLibraryLoadFromFile"])
def test_files_are_sent_with_their_paths(function: str, tmp_path: Path) -> None:
    path = tmp_path / "some.ptx"
    path.write_text(TEXT)
    more = "" if function == "cuModuleLoad" else ", None, None, 0, None, None, 0"
    seen = see(HEAD + f"""
def opened():
    return sorted(os.listdir("/proc/self/fd"))
first = made({function!r}, {str(path).encode()!r}{more})
before = opened()
handle = made({function!r}, {str(path).encode()!r}{more})
wrong = cuda.{function}(byref(c_uint64()), b"/nothing"{more})
show([handle, wrong, opened() == before])
""")
    _, record = records(seen, Kind.MODULE)
    assert record.body.handle == seen.shown[0]
    assert tails.name(record) == str(path)
    assert contents(seen) == {record.body.content: TEXT.encode()}
    assert seen.shown[1:] == [301, True]


def functions_of(seen: Seen) -> list[tuple[Any, ...]]:
    """Name, handle, module, kernel, known and layout of each that was announced."""
    return [(tails.name(r), r.body.handle, r.body.module, r.body.kernel, r.body.known,
             [tuple(parameter) for parameter in tails.function_parameters(r)]) for r in records(seen, Kind.FUNCTION)]


def assert_parameters(seen: Seen) -> None:
    """Parameters in the records of launches are those that the kernels got."""
    launches = records(seen, Kind.LAUNCH)
    done = seen.observed.work("kernel")
    assert [bytes(tails.launch_parameters(record)).hex() for record in launches] == [
        line["parameters"] for line in done]
    assert done


@pytest.mark.parametrize("version", ["12020", "12030", "13000"])
@pytest.mark.parametrize("form", ["text", "fatbin"])
def test_functions_of_old_and_new_drivers(version: str, form: str) -> None:
    seen = see(HEAD + f"""
module = made("cuModuleLoadData", text if {form == "text"} else {fatbin(TEXT)!r})
add, none = [made("cuModuleGetFunction", c_void_p(module), name) for name in (b"add", b"none")]
assert add == made("cuModuleGetFunction", c_void_p(module), b"add")
launch(add)
launch(none, 0)
ok("cuCtxSynchronize")
ok("cuModuleUnload", c_void_p(module))
again = made("cuModuleLoadData", text)
launch(made("cuModuleGetFunction", c_void_p(again), b"add"))
ok("cuCtxSynchronize")
show([module, add, none, again])
""", SOFTGPU_DRIVER_VERSION=version)
    module, add, none, again = seen.shown
    first, second, third = functions_of(seen)
    assert first == ("add", add, module, 0, 1, LAYOUT)
    assert second == ("none", none, module, 0, 1, [])
    assert (third[0], third[2], third[5]) == ("add", again, LAYOUT)
    assert_parameters(seen)


@pytest.mark.parametrize("version", ["12020", "13000"])
def test_kernels_of_libraries(version: str) -> None:
    seen = see(HEAD + """
library = made("cuLibraryLoadData", text, None, None, 0, None, None, 0)
kernel = made("cuLibraryGetKernel", c_void_p(library), b"add")
launch(kernel)
function = made("cuKernelGetFunction", c_void_p(kernel))
launch(function)
module = made("cuLibraryGetModule", c_void_p(library))
at, count = c_uint64(), c_size_t()
ok("cuLibraryGetGlobal", byref(at), byref(count), c_void_p(library), b"word")
ok("cuModuleGetGlobal_v2", byref(at), byref(count), c_void_p(module), b"word")
other = made("cuCtxCreate_v2", 0, 1)
inner = made("cuLibraryGetModule", c_void_p(library))
launch(kernel)
ok("cuCtxSynchronize")
ok("cuCtxSetCurrent", c_void_p(context))
ok("cuCtxSynchronize")
show([library, kernel, function, module, inner, other, context, at.value])
""", SOFTGPU_DRIVER_VERSION=version)
    library, kernel, function, module, inner, other, context, at = seen.shown
    assert functions_of(seen) == [("add", kernel, library, 1, 1, LAYOUT), ("add", function, module, 0, 1, LAYOUT)]
    image = TEXT.encode()
    assert {handle: (body.context, body.library, body.of, body.bytes, body.content)
            for handle, body in seen.alive(Kind.MODULE).items()} == {
        library: (0, 1, 0, len(image), digest(image)), module: (context, 0, library, len(image), digest(image)),
        inner: (other, 0, library, len(image), digest(image))}
    assert {a: (b.owner, b.bytes) for a, b in seen.alive(Kind.MEMORY).items()} == {at: (library, 8)}
    assert_parameters(seen)


@pytest.mark.parametrize("version", ["12020", "13000"])
def test_all_of_a_library_ends_with_it(version: str) -> None:
    seen = see(HEAD + """
def use():
    library = made("cuLibraryLoadData", text, None, None, 0, None, None, 0)
    kernel = made("cuLibraryGetKernel", c_void_p(library), b"add")
    function = made("cuKernelGetFunction", c_void_p(kernel))
    launch(kernel)
    launch(function)
    ok("cuLibraryGetGlobal", byref(c_uint64()), byref(c_size_t()), c_void_p(library), b"word")
    return library
for _ in range(3):
    library = use()
    ok("cuCtxSynchronize")
    ok("cuLibraryUnload", c_void_p(library))
wrong = [cuda.cuLibraryUnload(c_void_p(library)), cuda.cuModuleUnload(c_void_p(library))]
library = use()
ok("cuCtxSynchronize")
show([library, wrong])
""", SOFTGPU_DRIVER_VERSION=version, reuse=True)
    library, wrong = seen.shown
    assert all(wrong)
    alive = seen.alive(Kind.MODULE)
    assert len(alive) == 2
    assert alive[library].library == 1
    assert {body.of for body in alive.values()} == {0, library}
    assert len(seen.alive(Kind.FUNCTION)) == 2
    assert len(seen.alive(Kind.MEMORY)) == 1
    assert [(name, layout) for name, *_, layout in functions_of(seen)] == [("add", LAYOUT)] * 8
    assert_parameters(seen)


def test_kernels_that_are_listed() -> None:
    seen = see(HEAD + """
library = made("cuLibraryLoadData", text, None, None, 0, None, None, 0)
kernels = (c_uint64 * 5)()
ok("cuLibraryEnumerateKernels", kernels, 5, c_void_p(library))
names = [value("cuKernelGetName", c_char_p, c_void_p(kernel)).decode() for kernel in kernels[:2]]
for kernel, name in zip(kernels, names):
    launch(kernel, 4 if name == "add" else 0)
ok("cuCtxSynchronize")
show([library, list(kernels), names])
""")
    library, kernels, names = seen.shown
    assert [found[:5] for found in functions_of(seen)] == [
        (name, kernel, library, 1, 1) for name, kernel in zip(names, kernels, strict=False)]
    assert_parameters(seen)


def test_an_unload_that_fails() -> None:
    seen = see(HEAD + """
module = made("cuModuleLoadData", text)
add = made("cuModuleGetFunction", c_void_p(module), b"add")
launch(add)
made("cuModuleGetGlobal_v2", byref(c_size_t()), c_void_p(module), b"word")
wrong = cuda.cuModuleUnload(c_void_p(module))
launch(add)
ok("cuCtxSynchronize")
show([module, add, wrong])
""", rules=[Fail("cuModuleUnload")])
    module, add, wrong = seen.shown
    assert wrong == 999
    assert seen.alive(Kind.MODULE).keys() == {module}
    assert seen.alive(Kind.FUNCTION).keys() == {add}
    assert len(seen.alive(Kind.MEMORY)) == 1
    assert_parameters(seen)


def test_links(tmp_path: Path) -> None:
    path = tmp_path / "more.ptx"
    path.write_text(TEXT.replace(" add(", " other(").replace("none", "nothing").replace("word", "words"))
    seen = see(HEAD + f"""
def link():
    state = c_uint64()
    ok("cuLinkCreate_v2", 0, None, None, byref(state))
    data = create_string_buffer(text)
    ok("cuLinkAddData_v2", c_void_p(state.value), 1, data, size(len(text) + 1), b"some", 0, None, None)
    ok("cuLinkAddFile_v2", c_void_p(state.value), 1, {str(path).encode()!r}, 0, None, None)
    image, count = c_void_p(), c_size_t()
    ok("cuLinkComplete", c_void_p(state.value), byref(image), byref(count))
    return state.value, ctypes.string_at(image, count.value).decode(), made("cuModuleLoadData", image)
first, text_of, module = link()
wrong = cuda.cuLinkAddData_v2(c_void_p(first), 77, b"x", size(1), None, 0, None, None)
ok("cuLinkDestroy", c_void_p(first))
second, _, _ = link()
show([first, second, text_of, module, wrong])
""")
    first, second, text, module, wrong = seen.shown
    assert wrong
    sent = contents(seen)
    inputs = records(seen, Kind.LINK_INPUT)
    said = [(record.body.state, record.body.type, tails.name(record), sent[record.body.content]) for record in inputs]
    assert said == [
        (state, 1, name, data) for state in (first, second)
        for name, data in (("some", TEXT.encode() + b"\0"), (str(path), path.read_bytes()))]
    outputs = records(seen, Kind.LINK_OUTPUT)
    assert [(record.body.state, record.body.bytes) for record in outputs] == [
        (state, len(text)) for state in (first, second)]
    assert {record.body.content for record in outputs} == {digest(text.encode())}
    image = text.encode().rstrip(b"\0")
    assert sent[seen.alive(Kind.MODULE)[module].content] == image
    assert {body.state for body in seen.alive(Kind.LINK_INPUT, Kind.LINK_OUTPUT).values()} == {second}


def test_texts_that_do_not_agree_tell_nothing() -> None:
    """A driver that cannot be asked, and a container with two layouts of a kernel, or a packed text."""
    other = TEXT.replace(".param .u64 a, ", "")
    both = [fatbin(TEXT), fatbin(other)]
    entries = b"".join([container[16:] for container in both])
    mixed = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries
    seen = see(HEAD + f"""
module = made("cuModuleLoadData", {mixed!r})
add = made("cuModuleGetFunction", c_void_p(module), b"add")
launch(add)
ok("cuCtxSynchronize")
show([module, add])
""", SOFTGPU_DRIVER_VERSION="12020")
    module, add = seen.shown
    assert functions_of(seen) == [("add", add, module, 0, 0, [])]
    (launched,) = seen.said(Kind.LAUNCH)
    assert launched.flags == lib.WIRE_PARAMETERS_UNKNOWN
