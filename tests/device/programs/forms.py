"""Where each way to the driver's functions leads, by itself or with the preload library under this program.

    python -m tests.device.programs.forms DRIVER

A place is the offset in the driver's file, or the name of the door that it is; None: not found.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, TypeAlias

from tessera.driver_api import by_name, functions
from tests.device.programs.device import main
from tests.device.programs.symbols import exported

LEGACY, PER_THREAD = 1, 2
"""Flags of ``cuGetProcAddress``, beside 0."""
VERSIONS = (11080, 12000, 12040, 13000)
LINKED, BY_PATH = "linked", "its path"
ANYWHERE = None
"""RTLD_DEFAULT: what the loader gives a program that is linked with the driver."""

KINDS = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)
"""Of the result and the parameters of ``cuGetProcAddress``; the newer form has a pointer more."""

Place: TypeAlias = int | str | None
Answer: TypeAlias = tuple[int, list[int], Place]
"""The result, the status if there is one, the place."""


class Object(ctypes.Structure):
    """Dl_info."""

    _fields_ = (("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                ("address", ctypes.c_void_p))


class Places:
    """Says of an address what it is."""

    def __init__(self, driver: str) -> None:
        self.driver = driver
        self._libc = ctypes.CDLL(None)
        self._dlsym = self._libc.dlsym
        self._dlsym.restype = ctypes.c_void_p
        self._dlsym.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
        there = [(self._dlsym(ANYWHERE, f.symbol.encode()), f.symbol) for f in functions()]
        self.doors = {address: symbol for address, symbol in there if address and not self._in_driver(address)}

    def address(self, library: int | None, symbol: str) -> int | None:
        found = self._dlsym(library, symbol.encode())
        return int(found) if found else None

    def place(self, address: int | None) -> Place:
        if not address:
            return None
        if address in self.doors:
            return self.doors[address]
        return address - self._object(address).base if self._in_driver(address) else self._name(address)

    def _object(self, address: int) -> Any:
        found = Object()
        if not self._libc.dladdr(ctypes.c_void_p(address), ctypes.byref(found)):
            raise RuntimeError(f"{address:#x} is in no library")
        return found

    def _in_driver(self, address: int) -> bool:
        return os.path.samefile(self._object(address).file.decode(), self.driver)

    def _name(self, address: int) -> str:
        found = self._object(address)
        return f"{found.file.decode()}+{address - found.base:#x}"


def opened(name: str) -> int | None:
    """A library by its name; None where there is none."""
    try:
        return int(ctypes.CDLL(name, ctypes.RTLD_GLOBAL)._handle)
    except OSError:
        return None


def looked_up(places: Places, symbols: list[str]) -> dict[str, dict[str, Place] | None]:
    """By the way to each symbol; None for a library that is not there. A program that is linked has the driver there
    from the start; here it comes by being opened, unless the preload library is there first."""
    found: dict[str, dict[str, Place] | None] = {}
    for way, name in (("libcuda.so.1", "libcuda.so.1"), ("libcuda.so", "libcuda.so"), (BY_PATH, places.driver)):
        library = opened(name)
        found[way] = None if library is None else {s: places.place(places.address(library, s)) for s in symbols}
    return {LINKED: {symbol: places.place(places.address(ANYWHERE, symbol)) for symbol in symbols}, **found}


def asked(places: Places, function: Any, names: list[str], version: int, flags: int, status: list[Any]
          ) -> dict[str, Answer]:
    """By name what a form of ``cuGetProcAddress`` gives; ``status`` is where it writes it, if it does."""
    found, address = {}, ctypes.c_void_p()
    for name in names:
        address.value = None
        result = function(name.encode(), ctypes.byref(address), version, flags, *[ctypes.byref(s) for s in status])
        found[name] = result, [s.value for s in status], places.place(address.value)
    return found


def run(driver: str) -> dict[str, Any]:
    places = Places(driver)
    listed, there = {function.symbol for function in functions()}, exported(Path(driver))
    more = [symbol for symbol in there if symbol not in listed]
    found = looked_up(places, sorted(listed | set(there)))
    library, version = opened("libcuda.so.1"), ctypes.c_int()
    ctypes.CFUNCTYPE(*KINDS[:2])(places.address(library, "cuDriverGetVersion") or 0)(ctypes.byref(version))
    answers = {}
    for form, status in (("cuGetProcAddress", []), ("cuGetProcAddress_v2", [ctypes.c_int()])):
        if address := places.address(library, form):
            function = ctypes.CFUNCTYPE(*KINDS, *[ctypes.c_void_p for _ in status])(address)
            for wanted in sorted({*VERSIONS, version.value}):
                for flags in (0, LEGACY, PER_THREAD):
                    answers[f"{form}, {wanted}, {flags}"] = asked(places, function, [*by_name(), *more], wanted, flags,
                                                                  status)
    return {"version": version.value, "doors": len(places.doors), "more": more, "found": found, "answers": answers}


if __name__ == "__main__":
    main(run)
