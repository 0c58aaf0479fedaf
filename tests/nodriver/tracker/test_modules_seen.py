"""Modules and kernels of a program that ran under the preload library on the software driver."""

from __future__ import annotations

from pathlib import Path

from orchestrator.session.code import Code
from orchestrator.session.modules import Modules, VariableInfo
from orchestrator.session.operations import Kernel
from orchestrator.session.payloads import Payloads
from shim.wire import Kind
from tests.folders import own_folders  # noqa: F401 - a fixture
from tests.nodriver.shim.things import see

TEXT = """.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .b64 word;
.visible .entry add(.param .u64 a, .param .u8 b, .param .align 16 .b8 c[24], .param .f32 d) { ret; }
"""
FATBIN = Path(__file__).resolve().parents[1] / "driver" / "images" / "default.fatbin"
PROGRAM = f"text, image = {TEXT.encode()!r}, {FATBIN.read_bytes()!r}" + """
memory = made("cuMemAlloc_v2", size(4096))
def launch(function):
    values = [(c_uint64 * 8)(memory) for _ in range(4)]
    arguments = (c_void_p * 4)(*[ctypes.addressof(value) for value in values])
    ok("cuLaunchKernel", c_void_p(function), 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
def function(module, name):
    return made("cuModuleGetFunction", c_void_p(module), name)
module = made("cuModuleLoadData", text)
launch(function(module, b"add"))
library = made("cuLibraryLoadData", text, None, None, 0, None, None, 0)
kernel = made("cuLibraryGetKernel", c_void_p(library), b"add")
launch(kernel)
launch(made("cuKernelGetFunction", c_void_p(kernel)))
launch(function(made("cuLibraryGetModule", c_void_p(library)), b"add"))
ok("cuLibraryUnload", c_void_p(library))
launch(function(made("cuModuleLoadData", image), b"twice"))
link, linked, bytes_ = c_void_p(), c_void_p(), c_size_t()
ok("cuLinkCreate_v2", 0, None, None, byref(link))
ok("cuLinkAddData_v2", link, 1, text, size(len(text) + 1), b"text", 0, None, None)
ok("cuLinkComplete", link, byref(linked), byref(bytes_))
launch(function(made("cuModuleLoadData", linked), b"add"))
ok("cuModuleUnload", c_void_p(module))
show(None)
"""


def test_each_way_to_a_kernel() -> None:
    modules = Modules(Code(), Payloads())
    kernels: list[Kernel] = []
    ended: list[int] = []
    for record in see(PROGRAM).observed.records:
        ended += modules.take(record)
        if record.kind is Kind.LAUNCH:
            kernels.append(modules.kernel(record.body.function, record.place.context))
            module = kernels[-1].module
            expected = {"word": VariableInfo(8, "global", "visible", module)} if kernels[-1].name == "add" else {}
            assert modules.variables(module) == expected
    assert [kernel.reason for kernel in kernels] == [None] * 6
    assert all(kernel.program is not None and kernel.program.opaque is None for kernel in kernels)
    assert [kernel.name for kernel in kernels] == ["add"] * 4 + ["twice", "add"]
    assert [kernel.parameter_bytes for kernel in kernels] == [44] * 4 + [kernels[4].parameter_bytes, 44]
    first, of_library, function, of_module, packed, linked = [kernel.module for kernel in kernels]
    assert of_library == function == of_module
    assert len({first, of_library, packed, linked}) == 4
    assert ended[-1] == first and of_library in ended[:-1]
