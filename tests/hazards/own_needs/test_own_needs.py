"""P6, P7, P32: a library that is preloaded into every program needs something that is not there: a symbol of a newer C
library, a private one, another library; or it does something before the program begins.

It needs the C library alone, of 2021 or later, and its part before ``main`` is empty."""

from __future__ import annotations

import re
import subprocess

from tessera.driver_api import functions
from tests.hazards.kit import LIBRARY

FLOOR = (2, 34)
START = {"frame_dummy", "__do_global_dtors_aux"}
"""The compiler's own, which do nothing in a library without C++."""


def shown(*words: str) -> str:
    return subprocess.run([*words, LIBRARY], capture_output=True, text=True, check=True).stdout


def test_it_needs_the_c_library_alone() -> None:
    dynamic = shown("readelf", "-dW")
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) == ["libc.so.6"]
    assert "libcuda.so.1" in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert "TEXTREL" not in dynamic and "SYMBOLIC" not in dynamic
    versions = set(re.findall(r"GLIBC_(\w[\w.]*)", shown("readelf", "-VW")))
    assert all(tuple(map(int, version.split("."))) <= FLOOR for version in versions), versions


def test_nothing_is_left_for_later() -> None:
    """No lazy binding, which would take the loader in the middle of a call; no thread-local memory that is
    allocated."""
    dynamic = shown("readelf", "-dW")
    flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)(.*)", dynamic)).split()
    assert {"BIND_NOW", "NOW", "NODELETE", "STATIC_TLS"} <= set(flags)
    imported = {line.split()[-1].split("@")[0] for line in shown("nm", "-D", "--undefined-only").splitlines()}
    assert not imported & {"__tls_get_addr", "malloc", "calloc", "realloc", "free", "pthread_once", "pthread_atfork",
                           "atexit", "exit", "abort", "__stack_chk_fail"}


def test_nothing_runs_before_the_program() -> None:
    symbols = shown("readelf", "-sW")
    assert " IFUNC " not in symbols and "IRELATIV" not in shown("readelf", "-rW")
    arrays = re.findall(r"\.(?:init|fini)_array\s+\S+\s+\S+ \S+ (\S+)", shown("readelf", "-SW"))
    assert arrays == ["000008", "000008"], "the compiler's own"
    assert set(re.findall(r"FUNC\s+LOCAL\s+\S+\s+\S+ (\S+)", symbols)) >= START


def test_only_what_changes_can_be_written() -> None:
    """Slots change when the driver is opened; all other tables of addresses do not."""
    headers = shown("readelf", "-lW")
    assert "GNU_RELRO" in headers and not re.search(r"LOAD .* RWE ", headers)
    (stack,) = re.findall(r"GNU_STACK .*(R\S+) ", headers)
    assert stack == "RW"
    places = {name: place for place, name in re.findall(r"(\d+) (door_addresses|own_functions|slots)$",
                                                        shown("readelf", "-sW"), re.MULTILINE)}
    sections = dict(re.findall(r"\[ ?(\d+)\] (\S+)", shown("readelf", "-SW")))
    assert {name: sections[place] for name, place in places.items()} == {
        "door_addresses": ".data.rel.ro", "own_functions": ".data.rel.ro", "slots": ".data"}


def test_it_shows_the_list_and_little_else() -> None:
    listed = {line.split()[0] for line in shown("nm", "-D", "--defined-only", "--format=posix").splitlines()}
    assert listed == {f.symbol for f in functions()} | {"dlsym", "tessera_preloaded"}


def test_no_function_of_its_own_is_missing() -> None:
    assert "hook_" not in shown("nm", "-D", "--undefined-only")
