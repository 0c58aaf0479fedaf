"""The run-time from Python: its declarations, and kernels in shared objects."""

from __future__ import annotations

import ctypes
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgpu.engine import library
from softgpu.engine.library import LibraryMissing, Runtime
from tools import native
from tools.steps import StepFailed

ONE = 'int one(void); int __attribute__((visibility("default"))) one(void) { return %d; }'

KERNEL = r"""
#include "abi.h"
static const struct sg_site sites[] = {{"st.global.u32", 12, 4, 4, SG_GLOBAL, SG_WRITE, 0}};
static int32_t run(struct sg_env *env, uint64_t first, uint64_t last) {
  uint64_t out = *(const uint64_t *)(const void *)env->params;
  for (uint64_t block = first; block < last; block++) {
    uint64_t at[32];
    env->ctaid[0] = (uint32_t)block;
    env->warp = 0;
    for (uint32_t lane = 0; lane < env->threads; lane++) at[lane] = out + 4 * (block * env->threads + lane);
    env->helpers->log(env, at, (1ull << env->threads) - 1, 0);
    if (env->helpers->resolve(env, at, (1ull << env->threads) - 1, 0, &env->caches[0])) return SG_STOPPED;
    for (uint32_t lane = 0; lane < env->threads; lane++)
      *(uint32_t *)at[lane] += env->block[0] * (uint32_t)block + env->thread_ids[lane];
    env->counters[0] += env->threads;
  }
  return SG_DONE;
}
static const struct sg_cache caches[] = {{.extent = 4, .shift = 2}};
static const uint32_t work[SG_CLASSES] = {[SG_INTEGER] = 3, [SG_GLOBAL_WRITTEN] = 4};
__attribute__((visibility("default"))) const struct sg_kernel softgpu_kernel = {
  .magic = SG_MAGIC, .abi = ABI, .flags = SG_COUNTS | SG_LOGS, .param_bytes = 8, .site_count = 1, .cache_count = 1,
  .counter_count = 1, .run = (void *)run, .sites = sites, .counter_work = work, .caches = caches, .name = "number"};
"""


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return library.load(native.build())


def build_kernel(folder: Path, abi: str = "SG_ABI_VERSION") -> Path:
    source, made = folder / "kernel.c", folder / f"kernel-{abi}.so"
    source.write_text(KERNEL, encoding="utf-8")
    subprocess.run([native.compiler(), "-O1", "-shared", "-fPIC", "-fvisibility=hidden", f"-DABI={abi}",
                    f"-I{native.SOURCES}", str(source), "-o", str(made)], check=True)
    return made


@pytest.fixture(scope="module")
def kernel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_kernel(tmp_path_factory.mktemp("kernel"))


def open_kernel(runtime: Runtime, path: Path) -> Any:
    ffi, lib = runtime
    out, error = ffi.new("sg_kernel_handle **"), ffi.new("char[]", 300)
    if lib.sg_kernel_open(str(path).encode(), out, error, 300):
        raise OSError(ffi.string(error).decode())
    return out[0]


def launch(runtime: Runtime, pool: Any, kernel: Any, blocks: int, out: np.ndarray[Any, Any],
           size: int | None = None) -> tuple[str, dict[str, Any]]:
    """Launch with blocks of 8 threads; the message and what the result holds."""
    ffi, lib = runtime
    address = out.ctypes.data
    params = ffi.new("uint64_t *", address)
    table = ffi.new("struct sg_allocation[1]", [{"start": address, "size": out.nbytes if size is None else size}])
    request = ffi.new("struct sg_launch *", {
        "kernel": kernel, "grid": [blocks, 1, 1], "block": [8, 1, 1], "params": ffi.cast("uint8_t *", params),
        "params_size": 8, "allocations": table, "allocation_count": 1, "deadline_ms": 30000})
    result = ffi.new("struct sg_result *")
    lib.sg_launch_run(pool, request, result)
    found = {"status": result.status, "integer": result.counts[lib.SG_INTEGER], "threads": result.counters[0],
             "written": [(result.written.items[i].start - address, result.written.items[i].end - address)
                         for i in range(result.written.count)],
             "address": result.address - address, "line": result.line, "thread": list(result.thread)}
    message = ffi.string(result.message).decode()
    lib.sg_result_free(result)
    return message, found


def test_offsets_are_those_that_the_contract_states(runtime: Runtime) -> None:
    text = library.HEADERS[0].read_text(encoding="utf-8")
    checked = 0
    for name in ("sg_env", "sg_kernel"):
        body = re.search(rf"struct {name} {{\n(.*?)\n}};", text, re.DOTALL)
        assert body is not None
        for field, offset in re.findall(r"(\w+)(?:\[\d+\])?;\s*/\*\s*(\d+)", body[1]):
            assert runtime.ffi.offsetof(f"struct {name}", field) == int(offset), (name, field)
            checked += 1
    assert checked > 40
    assert runtime.ffi.sizeof("struct sg_env") == 152


def test_helpers_are_numbered_as_the_contract_states(runtime: Runtime) -> None:
    names = [name for name, _ in runtime.ffi.typeof("struct sg_helpers").fields]
    assert names == ["resolve", "load", "log", "trap", "undefined", "print", "assert_fail", "clock", "timer", "arrive",
                     "sleep", "spaces", "store", "gather", "scatter", "copy"]


def test_only_declared_functions_are_exported(runtime: Runtime) -> None:
    declared = set(re.findall(r"\b(sg_\w+)\(", library.declarations()))
    listed = subprocess.run(["nm", "-D", "--defined-only", native.build()], capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert declared
    assert declared <= exported
    assert all(name.startswith("sg_") for name in exported)


def test_a_kernel_in_a_shared_object(runtime: Runtime, kernel_file: Path) -> None:
    kernel, pool = open_kernel(runtime, kernel_file), runtime.lib.sg_pool_create(2)
    assert runtime.ffi.string(runtime.lib.sg_kernel_of(kernel).name) == b"number"
    out = np.zeros(8 * 500, np.uint32)
    message, found = launch(runtime, pool, kernel, 500, out)
    assert (message, found["status"]) == ("", runtime.lib.SG_OK)
    assert out.tolist() == list(range(4000))
    assert (found["threads"], found["integer"], found["written"]) == (4000, 12000, [(0, 16000)])
    runtime.lib.sg_kernel_close(kernel)
    runtime.lib.sg_pool_destroy(pool)


def test_a_fault_is_reported_in_full(runtime: Runtime, kernel_file: Path) -> None:
    kernel, pool = open_kernel(runtime, kernel_file), runtime.lib.sg_pool_create(1)
    out = np.zeros(80, np.uint32)
    message, found = launch(runtime, pool, kernel, 10, out, size=4 * 43 + 1)
    assert found["status"] == runtime.lib.SG_FAULT
    assert message == (f"kernel number, line 12: st.global.u32 writes 4 bytes at {out.ctypes.data + 172:#x}, past the "
                       f"end of the 173 bytes at {out.ctypes.data:#x} (block 5,0,0 thread 3,0,0)")
    assert (found["address"], found["line"], found["thread"]) == (172, 12, [3, 0, 0])
    runtime.lib.sg_kernel_close(kernel)
    runtime.lib.sg_pool_destroy(pool)


def test_launches_from_several_python_threads(runtime: Runtime, kernel_file: Path) -> None:
    kernel, pool = open_kernel(runtime, kernel_file), runtime.lib.sg_pool_create(2)

    def often(_: int) -> None:
        for _ in range(20):
            out = np.zeros(8 * 100, np.uint32)
            assert launch(runtime, pool, kernel, 100, out)[0] == ""
            assert out.tolist() == list(range(800))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(often, range(4)))
    runtime.lib.sg_kernel_close(kernel)
    runtime.lib.sg_pool_destroy(pool)


def test_what_cannot_be_opened(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot open shared object"):
        open_kernel(runtime, tmp_path / "none.so")
    with pytest.raises(OSError, match="another version of the run-time"):
        open_kernel(runtime, build_kernel(tmp_path, "99"))
    with pytest.raises(OSError, match="softgpu_kernel"):
        open_kernel(runtime, native.build())


def test_a_missing_library_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(LibraryMissing, match="python3 build.py build") as caught:
        library.load(tmp_path / "libsoftgpu-engine.so")
    assert isinstance(caught.value, ImportError)
    (tmp_path / "broken.so").write_bytes(b"no library")
    with pytest.raises(LibraryMissing, match="cannot be loaded"):
        library.load(tmp_path / "broken.so")


def test_the_library_is_built_anew_only_when_it_must(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "one.c").write_text(ONE % 1)
    monkeypatch.setattr(native, "SOURCES", sources)
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "lib" / "lib.so")
    monkeypatch.setattr(native, "BUILD", tmp_path / "build")
    made = native.build().stat().st_mtime_ns
    assert native.build().stat().st_mtime_ns == made
    (sources / "one.c").write_text(ONE % 2)
    assert ctypes.CDLL(str(native.build())).one() == 2
    (sources / "one.h").write_text("")
    assert native.build().stat().st_mtime_ns != made


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StepFailed, match="no C compiler"):
        native.compiler()
