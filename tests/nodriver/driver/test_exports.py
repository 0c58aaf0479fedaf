"""What the driver exports, and what ``cuGetProcAddress`` finds: both from the one list."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tessera.driver_api import DONE, REFUSED, by_name, form_of, functions
from tests.nodriver.driver.client import run
from tools import driver, native

FOUND, NOT_FOUND, TOO_NEW = 0, 1, 2
LOOK_UP = """
def look(name, version, flags):
    address, status = c_void_p(7), c_int(9)
    result = cuda.cuGetProcAddress_v2(name.encode(), byref(address), version, c_uint64(flags), byref(status))
    return [result, address.value, status.value]
def address(symbol):
    return ctypes.cast(getattr(cuda, symbol), c_void_p).value
"""


def test_exports_are_the_list() -> None:
    listed = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", driver.LIBRARY], capture_output=True,
                            text=True, check=True).stdout
    assert sorted(line.split()[0] for line in listed.splitlines()) == [f.symbol for f in functions()]


def test_both_names_are_one_library() -> None:
    assert driver.LINK.samefile(driver.LIBRARY)
    shown = subprocess.run(["readelf", "-d", driver.LIBRARY], capture_output=True, text=True, check=True).stdout
    assert "[libcuda.so.1]" in shown
    needed = [line for line in shown.splitlines() if "(NEEDED)" in line]
    assert {line.split("[")[1].rstrip("]") for line in needed} <= {"libc.so.6", "ld-linux-x86-64.so.2"}


def test_the_wheels_other_name_leads_to_the_same_library(tmp_path: Path) -> None:
    (tmp_path / driver.LIBRARY.name).symlink_to(driver.LIBRARY)
    other = driver.stand_in(tmp_path)
    (tmp_path / "main.c").write_text("int cuInit(unsigned); int main(void) { return cuInit(~0u) != 1; }\n")
    linked = tmp_path / "linked"
    subprocess.run([native.compiler(), tmp_path / "main.c", f"-L{tmp_path}", "-lcuda", f"-Wl,-rpath,{tmp_path}", "-o",
                    linked], check=True)
    subprocess.run([linked], env={}, check=True)
    assert run(f"""
other = ctypes.CDLL({str(other)!r})
show([name for name in {[f.symbol for f in functions()]!r}
      if ctypes.cast(getattr(cuda, name), c_void_p).value != ctypes.cast(getattr(other, name), c_void_p).value])
""").shown == []


def test_the_engine_beside_it_is_another() -> None:
    """Both hold the run-time; a program may load both, and shows the symbols of one to the other."""
    done = run(f"""
engine = ctypes.CDLL({str(native.build())!r}, ctypes.RTLD_GLOBAL)
engine.sg_set_deadlines(0, 0)
assert cuda.cuInit(0) == 0
context, link = c_void_p(), c_void_p()
assert cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0 and cuda.cuLinkCreate_v2(0, None, None, byref(link)) == 0
text = b".version 8.0\\n.target sm_80\\n.address_size 64\\n"
show(cuda.cuLinkAddData_v2(link, 1, text, c_size_t(len(text)), None, 0, None, None))
""")
    assert done.shown == 0, "its deadlines are its own"


@pytest.mark.parametrize("version", [2000, 4000, 7000, 11030, 12000, 13000])
@pytest.mark.parametrize("per_thread", [False, True])
def test_programs_of_a_version_get_its_forms(version: int, per_thread: bool) -> None:
    expected = {name: found.symbol if (found := form_of(name, version, per_thread)) else "" for name in by_name()}
    shown = run(LOOK_UP + f"""
expected = {expected!r}
wrong = []
for name, symbol in expected.items():
    result, found, status = look(name, {version}, {2 if per_thread else 0})
    if (result, found, status) != ((0, address(symbol), 0) if symbol else (0, None, 2)):
        wrong.append([name, symbol, result, found, status])
show(wrong)
""").shown
    assert shown == []


def test_names_that_are_not_there() -> None:
    assert run(LOOK_UP + """
found = c_void_p(7)
show([look("cuNoSuch", 13000, 0), look("cuMemAlloc_v2", 13000, 0), look("cuCtxGetDevice", 1000, 0), look("", 13000, 0),
      cuda.cuGetProcAddress(b"cuNoSuch", byref(found), 13000, c_uint64(0)), found.value,
      look("cuInit", 13000, 4)[0], look("cuInit", 13000, 3)[0],
      cuda.cuGetProcAddress_v2(None, byref(found), 13000, c_uint64(0), None),
      cuda.cuGetExportTable(byref(found), create_string_buffer(16)), found.value])
""").shown == [[0, None, NOT_FOUND], [0, None, NOT_FOUND], [0, None, TOO_NEW], [0, None, NOT_FOUND], 500, None, 1, 1, 1,
               500, None]


def test_what_is_refused_says_so_once() -> None:
    refused = [f.symbol for f in functions() if f.status == REFUSED]
    done = run(f"""
names = {refused!r}
show([sorted({{getattr(cuda, name)(None, None, None, None) for name in names}}) for _ in range(2)])
""")
    assert done.shown == [[801], [801]]
    lines = done.errors.splitlines()
    assert lines == [f"softgpu: {symbol} is not supported by the software driver" for symbol in refused]
    assert sum(f.status == DONE for f in functions()) + len(refused) == len(functions())
