"""What handles of functions mean: kernels with their access programs, from records."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import orchestrator.session.code as code_module
from orchestrator.session.code import Code
from orchestrator.session.modules import Modules, VariableInfo
from orchestrator.session.operations import Kernel
from orchestrator.session.payloads import Payloads
from ptxparse.api import ProgramCache
from shim.layout import lib
from shim.wire import Kind, records
from tessera.content import content
from tessera.reasons import Reason
from tests.nodriver.tracker.fatbins import ALONE, container, cubin, machine, ptx, text
from tests.program_records import CONTEXT, MODULE, SAXPY, Program

STORE = "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], 7; ret;"
TEXT = text(body=STORE).encode()
OTHER = 0xD000
LIBRARY, IMAGE_PTX, CUBIN, FATBIN = 0xB000, 1, 2, 3
ONE = [(0, 8)]


class Session(Program):
    """Records, and what the tracker makes of them as soon as they are written."""

    def __init__(self, code: Code | None = None, payloads: Payloads | None = None) -> None:
        super().__init__()
        self.modules = Modules(code or Code(), payloads or Payloads())
        self.gone: list[int] = []
        self.begin()

    def record(self, kind: Kind, /, **fields: Any) -> int:
        number = super().record(kind, **fields)
        for record in records(self.data[-1]):
            self.gone += self.modules.take(record)
        return number

    def load(self, image: bytes, handle: int = MODULE, *, kind: int = IMAGE_PTX, context: int = CONTEXT, of: int = 0,
             sent: bool = True, marks: int = 0) -> None:
        """A module, of no context a library."""
        name = self.payload(image) if sent else content(image)
        self.record(Kind.MODULE, handle=handle, context=context, library=not context, image=kind, bytes=len(image),
                    content=name, of=of, marks=marks)

    def link(self, output: bytes, *inputs: tuple[int, bytes]) -> None:
        for kind, image in inputs:
            self.record(Kind.LINK_INPUT, state=1, type=kind, bytes=len(image),
                        content=self.payload(image) if image else bytes(32))
        self.record(Kind.LINK_OUTPUT, state=1, bytes=len(output), content=content(output))
        self.ended(Kind.LINK_INPUT, 1)

    def device(self, ordinal: int, capability: int, context: int) -> None:
        self.record(Kind.DEVICE, ordinal=ordinal, capability=capability)
        self.record(Kind.CONTEXT, handle=context, device=ordinal)

    def asked(self, name: str = "k", module: int = MODULE, context: int = 0) -> Kernel:
        self.function(name, ONE, module=module)
        return self.modules.kernel(SAXPY, context)

    def kernel(self, image: bytes, name: str = "k", **more: Any) -> Kernel:
        """A kernel of a module that is loaded for it."""
        self.load(image, **more)
        return self.asked(name)


def reached(kernel: Kernel) -> list[int]:
    """The parameter words by which it reaches memory."""
    assert kernel.reason is None and kernel.program is not None
    return [base.word for access in kernel.program.accesses for base in access.bases]


def test_a_kernel_of_a_text() -> None:
    session = Session()
    kernel = session.kernel(TEXT)
    assert (kernel.name, kernel.module, kernel.image, kernel.parameter_bytes) == ("k", 0, content(TEXT), 8)
    assert reached(kernel) == [0]
    assert session.modules.kernel(SAXPY) is kernel
    assert session.asked() is kernel
    assert session.asked("none").reason is Reason.UNKNOWN_KERNEL


def test_handles_that_mean_nothing() -> None:
    session = Session()
    assert session.modules.kernel(1).reason is Reason.UNKNOWN_KERNEL
    for module in (0, 99):
        kernel = session.asked(module=module)
        assert (kernel.name, kernel.module, kernel.reason, kernel.program) == ("k", -1, Reason.UNKNOWN_KERNEL, None)
    assert session.modules.module(99) is None
    assert session.modules.variables(99) == {} and not session.modules.runs_on(99, 80)


@pytest.mark.parametrize("image", [b"", b"nothing", b".version 8.0\n.target", container(ptx())[:-1], TEXT[:-3]])
def test_images_that_cannot_be_read(image: bytes) -> None:
    session = Session()
    kernel = session.kernel(image, sent=bool(image))
    assert kernel.reason is Reason.UNKNOWN_IMAGE
    assert session.modules.kernel(SAXPY) is kernel
    assert session.modules.variables(0) == {} and not session.modules.runs_on(0, 90)


def test_an_image_that_comes_later() -> None:
    session = Session()
    kernel = session.kernel(TEXT, sent=False)
    assert kernel.reason is Reason.UNKNOWN_IMAGE and session.modules.kernel(SAXPY) is kernel
    session.payload(TEXT)
    assert reached(session.modules.kernel(SAXPY)) == [0]


def test_images_are_not_lost_among_uploads() -> None:
    payloads = Payloads(limit=10_000)
    for early in (True, False):
        session = Session(payloads=payloads)
        session.load(TEXT, sent=early)
        if not early:
            session.payload(TEXT)
        for number in range(10):
            session.payload(bytes([number]) * 9_999)
        assert payloads.get(content(TEXT)) is None
        assert reached(session.asked()) == [0]


def test_machine_code_has_no_text() -> None:
    session = Session()
    kernel = session.kernel(cubin(80), kind=CUBIN)
    assert (kernel.reason, kernel.image) == (Reason.NO_PTX, content(cubin(80)))


def test_another_layout_than_the_driver_has() -> None:
    session = Session()
    session.load(TEXT)
    session.function("k", [(0, 8), (8, 4)])
    assert session.modules.kernel(SAXPY).reason is Reason.NO_PTX
    session.record(Kind.FUNCTION, handle=SAXPY, module=MODULE, known=0, name_bytes=1, tail=b"k")
    assert reached(session.modules.kernel(SAXPY)) == [0]


def test_the_device_chooses_in_a_container() -> None:
    image = container(machine(86, 75), ptx(80, body=STORE), ptx(90, ALONE))
    session = Session()
    for ordinal, (capability, reason) in enumerate([(80, None), (86, Reason.NO_PTX), (75, Reason.NO_PTX), (90, None)]):
        session.device(ordinal, capability, OTHER + ordinal)
        assert session.kernel(image, kind=FATBIN, context=OTHER + ordinal).reason is reason
    kernel = session.modules.kernel(SAXPY)
    assert kernel.program is not None and not kernel.program.accesses, "that of sm_90a stores nothing"
    assert session.kernel(image, kind=FATBIN, context=7).reason is Reason.NO_PTX, "nobody knows on which device it is"
    alike = Session()
    assert reached(alike.kernel(image, kind=FATBIN, context=7)) == [0], "all devices are alike"


def test_what_runs_where() -> None:
    session = Session()
    for image, fitting in ((text("80").encode(), {80, 86, 90, 100, 103}), (text("90a").encode(), {90}),
                           (text("100f").encode(), {100, 103}), (text("80, debug").encode(), {80, 86, 90, 100, 103}),
                           (text("x").encode(), set()), (container(ptx(80), ptx(90)), {80, 86, 90, 100, 103}),
                           (cubin(80), set())):
        session.load(image)
        number = session.modules.module(MODULE)
        assert number is not None
        assert {c for c in (70, 80, 86, 90, 100, 103) if session.modules.runs_on(number, c)} == fitting


def test_handles_are_used_again() -> None:
    session = Session()
    first = session.kernel(TEXT)
    session.ended(Kind.MODULE, MODULE, marks=lib.WIRE_CAPTURED)
    assert session.modules.kernel(SAXPY) is first and session.gone == []
    session.ended(Kind.MODULE, MODULE)
    assert session.gone == [0]
    assert session.modules.kernel(SAXPY).reason is Reason.UNKNOWN_KERNEL
    assert session.modules.variables(0) == {} and session.modules.module(MODULE) is None
    second = session.kernel(TEXT)
    assert (second.module, second.program) == (1, first.program)
    session.load(TEXT)  # its end was not seen
    assert session.gone == [0, 1]
    assert session.modules.kernel(SAXPY).reason is Reason.UNKNOWN_KERNEL
    assert session.asked().module == 2


def test_what_is_said_again_is_the_same() -> None:
    session = Session()
    kernel, gone = session.kernel(TEXT), 0xA001
    session.load(TEXT, gone)
    session.load(TEXT, marks=lib.WIRE_RESTATED)
    assert session.modules.kernel(SAXPY) is kernel and session.gone == []
    session.record(Kind.EPOCH, epoch=1)
    assert session.modules.kernel(SAXPY).reason is Reason.UNKNOWN_KERNEL
    session.load(TEXT, marks=lib.WIRE_RESTATED)
    assert session.asked() is kernel
    assert session.modules.module(gone) is None and session.gone == []
    session.record(Kind.EPOCH, epoch=2)
    assert session.gone == [1], "nobody has said it again"
    other = text(body="ret;").encode()
    session.load(other, marks=lib.WIRE_RESTATED)
    assert session.gone == [1, 0] and session.asked().module == 2


def test_a_library_is_one_module_in_each_context() -> None:
    session = Session()
    session.device(1, 90, OTHER)
    image = container(ptx(80, body=STORE), ptx(90))
    session.load(image, LIBRARY, kind=FATBIN, context=0)
    session.record(Kind.FUNCTION, handle=SAXPY, module=LIBRARY, kernel=1, name_bytes=1, tail=b"k")
    here, there = session.modules.kernel(SAXPY, CONTEXT), session.modules.kernel(SAXPY, OTHER)
    assert reached(here) == [0] and reached(there) == []
    assert here.module != there.module
    assert session.modules.kernel(SAXPY, CONTEXT) is here and session.modules.kernel(SAXPY, OTHER) is there
    session.load(image, kind=FATBIN, of=LIBRARY)
    assert session.modules.module(MODULE) == session.modules.module(LIBRARY, CONTEXT) == here.module
    session.function("k", ONE, handle=0xF001)
    assert session.modules.kernel(0xF001).module == here.module
    session.ended(Kind.CONTEXT, OTHER)
    assert session.gone == [there.module]
    session.ended(Kind.MODULE, LIBRARY)
    assert session.gone == [there.module, 0, here.module]
    for handle in (SAXPY, 0xF001):
        assert session.modules.kernel(handle, CONTEXT).reason is Reason.UNKNOWN_KERNEL


def test_a_library_that_is_said_again() -> None:
    session = Session()
    session.load(TEXT, LIBRARY, context=0)
    session.load(TEXT, of=LIBRARY)
    number = session.modules.module(MODULE)
    session.record(Kind.EPOCH, epoch=1)
    session.load(TEXT, LIBRARY, context=0, marks=lib.WIRE_RESTATED)
    session.load(TEXT, of=LIBRARY, marks=lib.WIRE_RESTATED)
    assert session.modules.module(MODULE) == session.modules.module(LIBRARY, CONTEXT) == number


def test_a_module_of_a_library_has_its_image() -> None:
    session = Session()
    session.load(TEXT, LIBRARY, context=0)
    session.record(Kind.MODULE, handle=MODULE, context=CONTEXT, of=LIBRARY)
    assert reached(session.asked()) == [0]


def test_modules_end_with_their_context() -> None:
    session = Session()
    kernel = session.kernel(TEXT)
    session.function("k", ONE, handle=0xF001, module=0xE000)
    session.record(Kind.FUNCTION, handle=0xF002, module=0xE000, kernel=1, name_bytes=1, tail=b"k")
    session.ended(Kind.CONTEXT, CONTEXT)
    assert session.gone == [kernel.module]
    assert [session.modules.kernel(handle).name for handle in (SAXPY, 0xF001, 0xF002)] == ["", "", "k"]


CALLER = text(body="call helper, (); ret;", more=".extern .func helper;\n.extern .global .align 4 .b32 shared_one;")
HELPER = (".version 8.0\n.target sm_80\n.address_size 64\n.visible .func helper { ret; }\n"
          ".visible .global .align 4 .b32 shared_one[3];\n.const .align 4 .f32 table[2];\n")


@pytest.mark.parametrize(("inputs", "expected"), [
    ([(1, TEXT)], None), ([(1, TEXT + b"\0"), (1, HELPER.encode())], None), ([(2, container(ptx(80)))], None),
    ([(0, cubin(80))], Reason.NO_PTX), ([(1, TEXT), (4, b"library")], Reason.NO_PTX), ([], Reason.NO_PTX),
    ([(2, container(machine(80, 75), ptx(80)))], Reason.NO_PTX), ([(1, b"")], Reason.UNKNOWN_IMAGE),
    ([(1, TEXT), (1, b"junk")], Reason.UNKNOWN_IMAGE), ([(1, HELPER.encode())], Reason.UNKNOWN_KERNEL),
    ([(1, TEXT), (1, TEXT)], Reason.NO_PTX),
    ([(1, CALLER.encode() + b".weak .func twice { ret; }"), (1, HELPER.encode() + b".weak .func twice { ret; }")],
     Reason.NO_PTX),
])  # fmt: skip
def test_what_was_linked(inputs: list[tuple[int, bytes]], expected: Reason | None) -> None:
    session = Session()
    session.link(cubin(80), *inputs)
    kernel = session.kernel(cubin(80), kind=CUBIN)
    assert kernel.reason is expected
    assert kernel.image == content(cubin(80))


def test_links_are_told_apart() -> None:
    session = Session()
    first, second = cubin(80), cubin(86)
    session.link(first, (1, TEXT))
    session.link(second, (1, text(name="other").encode()))
    assert session.kernel(second, kind=CUBIN).reason is Reason.UNKNOWN_KERNEL
    assert session.asked("other").reason is None
    assert session.kernel(first, kind=CUBIN).reason is None


def test_calls_into_other_inputs_are_opaque_and_variables_are_joined() -> None:
    session = Session()
    session.link(cubin(80), (1, CALLER.encode()), (1, HELPER.encode()))
    kernel = session.kernel(cubin(80), kind=CUBIN)
    assert kernel.program is not None and kernel.program.opaque is Reason.UNDEFINED_CALLEE
    assert session.modules.variables(kernel.module) == {
        "shared_one": VariableInfo(12, "global", "visible", kernel.module),
        "table": VariableInfo(8, "const", "", kernel.module),
    }
    assert session.modules.runs_on(kernel.module, 86) and not session.modules.runs_on(kernel.module, 75)


def test_a_link_whose_result_is_a_text() -> None:
    session = Session()
    session.link(TEXT, (4, b"library"))
    assert reached(session.kernel(TEXT)) == [0], "the text is what is loaded"


def test_kernels_are_analysed_once_and_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    analysed: list[str] = []
    real = code_module.analyze_kernel
    monkeypatch.setattr(code_module, "analyze_kernel", lambda m, k: analysed.append(k.name) or real(m, k))
    parsed: list[str] = []
    real_parse = code_module.parse
    monkeypatch.setattr(code_module, "parse", lambda text: parsed.append(text) or real_parse(text))
    code = Code()
    image = TEXT + b".visible .entry other(.param .u64 p) { ret; }\n"
    for session in (Session(code), Session(code)):
        session.load(image)
        assert session.asked().reason is None
    assert (analysed, len(parsed)) == (["k"], 1)
    assert session.asked("other").reason is None
    assert (analysed, len(parsed)) == (["k", "other"], 1)


def test_little_room_costs_time_or_knowledge() -> None:
    image = TEXT + b".visible .entry other(.param .u64 p) { ret; }\n"
    second = text(name="second").encode()
    session = Session(Code(parsed=1))
    kernel = session.kernel(image)
    session.load(second, 0xA001)
    assert session.asked("second", 0xA001).reason is None
    assert session.asked() is kernel
    assert session.asked("other").reason is None, "it is parsed again"
    session = Session(Code(held=1))
    kernel = session.kernel(image)
    session.load(second, 0xA001)
    assert session.asked("second", 0xA001).reason is None
    assert session.asked() is kernel, "whoever has it keeps it"
    assert session.asked("other").reason is Reason.UNKNOWN_IMAGE
    session.payload(image)
    assert session.asked("other").reason is None


def test_programs_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Session(Code(ProgramCache(tmp_path))).kernel(TEXT)
    assert reached(first) == [0]
    monkeypatch.setattr(code_module, "analyze_kernel", None)
    monkeypatch.setattr("ptxparse.cache.analyze_kernel", None)
    assert Session(Code(ProgramCache(tmp_path))).kernel(TEXT).program == first.program
    monkeypatch.undo()
    (tmp_path / "file").touch()
    assert reached(Session(Code(ProgramCache(tmp_path / "file" / "folder"))).kernel(TEXT)) == [0]


KINDS = (Kind.DATA, Kind.DEVICE, Kind.CONTEXT, Kind.MODULE, Kind.FUNCTION, Kind.LINK_INPUT, Kind.LINK_OUTPUT, Kind.END,
         Kind.EPOCH)


@given(st.integers(0, 1 << 32))
def test_records_of_any_kind_in_any_order(seed: int) -> None:
    draw = random.Random(seed)
    session = Session()
    images = [TEXT, cubin(80), container(machine(80, 75), ptx(80)), b"junk"]

    def handle() -> int:
        return draw.choice([0, 1, 2, 3, 4, MODULE, CONTEXT, SAXPY])

    for _ in range(60):
        image = draw.choice(images)
        common: dict[str, Any] = {"marks": draw.choice([0, 0, 1, 2])}
        match draw.choice(KINDS):
            case Kind.DATA:
                session.payload(image)
            case Kind.DEVICE:
                session.record(Kind.DEVICE, ordinal=draw.randrange(-1, 3), capability=draw.choice([0, 80, 1 << 31]))
            case Kind.CONTEXT:
                session.record(Kind.CONTEXT, handle=handle(), device=draw.randrange(-1, 3), **common)
            case Kind.MODULE:
                session.record(Kind.MODULE, handle=handle(), context=handle(), library=draw.randrange(2),
                               image=draw.randrange(4), bytes=draw.choice([0, 1, 1 << 63]), content=content(image),
                               of=handle(), **common)
            case Kind.FUNCTION:
                session.record(Kind.FUNCTION, handle=handle(), module=handle(), kernel=draw.randrange(2),
                               known=draw.randrange(2), parameter_bytes=draw.choice([0, 8, (1 << 32) - 1]),
                               name_bytes=2, tail=draw.choice([b"k\0", b"k", b"\xff\xfe"]), **common)
            case Kind.LINK_INPUT:
                session.record(Kind.LINK_INPUT, state=handle(), type=draw.randrange(8), bytes=draw.randrange(2),
                               content=content(image), **common)
            case Kind.LINK_OUTPUT:
                session.record(Kind.LINK_OUTPUT, state=handle(), bytes=1, content=content(image), **common)
            case Kind.END:
                ending = draw.choice([Kind.MODULE, Kind.CONTEXT, Kind.LINK_INPUT, Kind.MEMORY])
                session.ended(ending, handle(), **common)
            case Kind.EPOCH:
                session.record(Kind.EPOCH, epoch=1)
        kernel = session.modules.kernel(handle(), handle())
        assert (kernel.program is None) == (kernel.reason is not None)
        if kernel.module >= 0:
            assert kernel.module not in session.gone, "what has ended is not found"
            session.modules.variables(kernel.module)
            session.modules.runs_on(kernel.module, 80)
    assert len(set(session.gone)) == len(session.gone), "each ends once"
