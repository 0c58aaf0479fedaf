"""From IR to a loaded shared object: our linker against what the system's loader makes of its images."""

from __future__ import annotations

import ctypes
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from softgpu.engine.elf import Relocatable
from softgpu.engine.errors import CompileError, EngineError
from softgpu.engine.linker import shared_object
from softgpu.engine.objects import FULL, QUICK, assembly, compile_object, compile_shared, link, optimized_ir
from softgpu.engine.target import TARGETS, Target, best_target, host_target, target_named

HOST = host_target()
BELOW = TARGETS[TARGETS.index(HOST):]
"""The levels that this machine can run."""

EVERYTHING = """
@table = private constant <32 x i32> <{squares}>
@text = private constant [4 x i8] c"abc\\00"
@names = private constant [2 x ptr] [ptr @text, ptr getelementptr (i8, ptr @text, i64 1)]
define i32 @choose(i32 %x) noinline #0 {{
  switch i32 %x, label %other [ i32 3, label %a
    i32 4, label %b
    i32 5, label %c
    i32 6, label %d
    i32 7, label %e ]
a:
  call void @touch()
  ret i32 7
b:
  ret i32 99
c:
  call void @touch()
  ret i32 1234
d:
  ret i32 5
e:
  call void @touch()
  ret i32 17
other:
  ret i32 0
}}
define internal void @touch() noinline uwtable {{
  %p = alloca i32
  store volatile i32 1, ptr %p
  ret void
}}
declare double @fmod(double, double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal double @run(ptr %to, ptr %from, i64 %bytes, double %x) #0 {{
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %squares = load <32 x i32>, ptr @table
  store <32 x i32> %squares, ptr %from, align 4
  %r = frem double %x, 3.0
  ret double %r
}}
@softgpu_kernel = constant [4 x ptr] [ptr @run, ptr @choose, ptr @fmod, ptr @names]
"""


def everything(target: Target) -> str:
    """A module with a constant pool, a jump table, unwind tables, pointers in data, and imported functions."""
    squares = ", ".join([f"i32 {lane * lane}" for lane in range(32)])
    return target.header + EVERYTHING.format(squares=squares) + f"attributes #0 = {{ {target.attributes} }}\n"


def loaded(path: Path, words: int) -> ctypes.Array[ctypes.c_uint64]:
    """The words of the exported table."""
    return (ctypes.c_uint64 * words).in_dll(ctypes.CDLL(str(path)), "softgpu_kernel")


def module(body: str) -> bytes:
    return compile_object(HOST.header + body, QUICK)


@pytest.mark.parametrize("target", BELOW, ids=lambda target: target.name)
@pytest.mark.parametrize("level", [QUICK, FULL])
def test_loaded_object_does_what_the_ir_says(target: Target, level: int, tmp_path: Path) -> None:
    link(compile_object(everything(target), level, target, verify=True), tmp_path / "all.so")
    words = loaded(tmp_path / "all.so", 4)
    arguments = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_double)
    run = ctypes.CFUNCTYPE(ctypes.c_double, *arguments)(words[0])
    source, copy = (ctypes.c_int * 32)(*range(32)), (ctypes.c_int * 32)()
    assert run(copy, source, 128, 7.5) == 1.5
    assert list(copy) == list(range(32))
    assert list(source) == [lane * lane for lane in range(32)]
    choose = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(words[1])
    assert [choose(i) for i in range(2, 9)] == [0, 7, 99, 1234, 5, 17, 0]
    fmod = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(words[2])
    assert fmod(9.5, 4.0) == 1.5
    assert [ctypes.string_at(p) for p in (ctypes.c_uint64 * 2).from_address(words[3])] == [b"abc", b"bc"]


def permissions(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(text, 16) for text in line.split()[0].split("-"))
        if first <= address < last:
            return line.split()[1]
    raise AssertionError("not mapped")


def test_nothing_is_writable_once_loaded(tmp_path: Path) -> None:
    link(compile_object(everything(HOST)), tmp_path / "fixed.so")
    words = loaded(tmp_path / "fixed.so", 4)
    assert permissions(ctypes.addressof(words)) == "r--p"
    assert permissions(words[0]) == "r-xp"
    assert permissions(words[3]) == "r--p"


def test_image_has_function_names_and_unwind_tables() -> None:
    image = shared_object(compile_object(everything(HOST)))
    assert b"\0touch\0" in image and b"\0choose\0" in image
    programs = [struct.unpack_from("<I", image, 64 + 56 * i)[0] for i in range(7)]
    assert 0x6474E550 in programs
    offset, size = struct.unpack_from("<Q16xQ", image, 64 + 56 * programs.index(0x6474E550) + 8)
    assert size == 8
    version, _, _, _, distance = struct.unpack_from("<BBBBi", image, offset)
    length, first = struct.unpack_from("<II", image, offset + 4 + distance)
    assert version == 1 and 0 < length < 100 and first == 0  # the table starts with its common entry


def test_same_text_makes_the_same_bytes_in_any_thread() -> None:
    texts = [everything(HOST), everything(HOST).replace("touch", "reach")] * 4
    with ThreadPoolExecutor(4) as threads:
        objects = list(threads.map(lambda text: compile_shared(text, QUICK), texts))
    assert len(set(objects)) == 2
    assert objects[0] == objects[2]


@pytest.mark.parametrize("body, message", [
    ("declare float @sinf(float)\n@softgpu_kernel = constant ptr @sinf", "sinf"),
    ("declare void @a()\ndeclare void @b()\n@softgpu_kernel = constant [2 x ptr] [ptr @b, ptr @a]", "a, b"),
    ("@softgpu_kernel = global i32 1", "data that changes"),
    ("@softgpu_kernel = global i32 0", "data that changes"),
    ("@t = internal thread_local global i32 0\ndefine ptr @f() {\n ret ptr @t\n}\n"
     "@softgpu_kernel = constant ptr @f", "__tls_get_addr"),
    ("@softgpu_kernel = internal constant i32 1\n@llvm.used = appending global [1 x ptr] [ptr @softgpu_kernel], "
     'section "llvm.metadata"', "does not define softgpu_kernel"),
    ("@other = constant i32 1", "does not define softgpu_kernel"),
])  # fmt: skip
def test_what_no_kernel_has_is_refused(body: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        shared_object(module(body))


def test_ir_that_llvm_refuses_is_an_error_with_its_words() -> None:
    with pytest.raises(CompileError, match="expected top-level entity"):
        compile_object("nonsense")
    with pytest.raises(CompileError, match="i64"):
        compile_object("define i32 @f(i64 %x) {\n ret i32 %x\n}")


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(100), b"x" * 64], ids=["empty", "zeros", "text"])
def test_other_files_are_no_objects(data: bytes) -> None:
    with pytest.raises((CompileError, struct.error)):
        Relocatable(data)


def test_wide_registers_are_used_where_there_are_any() -> None:
    for target in TARGETS:
        body = "define void @f(ptr %p) #0 {\n %v = load <32 x i32>, ptr %p, align 4\n %w = mul <32 x i32> %v, %v\n"
        body += " store <32 x i32> %w, ptr %p, align 4\n ret void\n}\n"
        text = target.header + body + f"attributes #0 = {{ {target.attributes} }}\n"
        assert ("%zmm" in assembly(text, target=target)) == target.has("avx512f")
        assert "mul" in optimized_ir(text, target=target)


def test_levels_are_found_by_features() -> None:
    for target in TARGETS:
        assert best_target(dict.fromkeys(target.features, True)) == target
        assert target_named(target.name) == target
        assert target.vector_bits == (512 if target.has("avx512f") else 256)
    almost = dict.fromkeys(TARGETS[0].features, True)
    assert best_target({**almost, "avx512fp16": False}).name == "x86-64-v4-vbmi"
    assert best_target({**almost, "avx512dq": False}).name == "x86-64-v3"
    with pytest.raises(EngineError, match="lacks avx2, fma"):
        best_target({**almost, "avx2": False, "fma": False})
    with pytest.raises(EngineError, match="x86-64-v9"):
        target_named("x86-64-v9")
