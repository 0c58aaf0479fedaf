"""The list of the driver's functions: against the headers of a toolkit, and in itself."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tessera.driver_api import STATUSES, by_name, form_of, functions
from tessera.driver_api.headers import rows
from tools import driver
from tools.native import compiler
from tools.venv import PYTHON

DECLARATION = re.compile(r"\bCUresult\s+(cu\w+)\s*\(")


def include() -> Path:
    """The headers that the software driver is compiled with."""
    return driver.headers(PYTHON)


def test_list_is_what_the_typedefs_say() -> None:
    listed = [(f.symbol, f.name, f.since, f.stream, f.header, f.parameters) for f in functions()]
    assert listed == rows(include()), "to write it anew: .venv/bin/python -m tessera.driver_api.headers FOLDER"


def test_symbols_are_those_that_cuda_h_declares() -> None:
    folder = include()
    done = subprocess.run([compiler(), "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-I", folder, folder / "cuda.h"],
                          capture_output=True, text=True, timeout=60, check=True)
    declared = set(DECLARATION.findall(done.stdout))
    assert len(declared) > 600
    assert {f.symbol for f in functions() if f.header == "cuda"} == declared


def test_entries_make_sense() -> None:
    symbols = [f.symbol for f in functions()]
    assert symbols == sorted(set(symbols))
    for function in functions():
        assert function.status in STATUSES and function.stream in ("", "ptsz", "ptds")
        assert function.symbol.startswith(function.name) and 2000 <= function.since <= 13000
        assert function.symbol.endswith(function.stream) and function.parameters
    twins = [f for f in functions() if f.stream]
    assert {f.symbol.removesuffix(f"_{f.stream}") for f in twins} <= set(symbols)


@pytest.mark.parametrize(("name", "version", "per_thread", "symbol"), [
    ("cuMemAlloc", 2000, False, "cuMemAlloc"), ("cuMemAlloc", 3010, False, "cuMemAlloc"),
    ("cuMemAlloc", 3020, False, "cuMemAlloc_v2"), ("cuMemAlloc", 13000, True, "cuMemAlloc_v2"),
    ("cuMemcpyHtoD", 13000, False, "cuMemcpyHtoD_v2"), ("cuMemcpyHtoD", 13000, True, "cuMemcpyHtoD_v2_ptds"),
    ("cuMemcpyHtoD", 6050, True, "cuMemcpyHtoD_v2"), ("cuLaunchKernel", 7000, True, "cuLaunchKernel_ptsz"),
    ("cuGetProcAddress", 11030, False, "cuGetProcAddress"), ("cuGetProcAddress", 12000, False, "cuGetProcAddress_v2"),
    ("cuCtxCreate", 13000, False, "cuCtxCreate_v4"), ("cuCtxCreate", 3020, False, "cuCtxCreate_v2"),
    ("cuProfilerStart", 13000, False, "cuProfilerStart"), ("cuLaunchKernelEx", 11000, False, None),
    ("cuNoSuch", 13000, False, None),
])
def test_what_a_program_of_a_version_gets(name: str, version: int, per_thread: bool, symbol: str | None) -> None:
    found = form_of(name, version, per_thread)
    assert (found.symbol if found else None) == symbol


def test_forms_of_a_name_are_in_order() -> None:
    assert [f.symbol for f in by_name()["cuMemcpyHtoD"]] == ["cuMemcpyHtoD", "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"]
