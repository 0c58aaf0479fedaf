"""Python programs that load the software driver as any other, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tessera.environment import CACHE, DEVICES, STRICT
from tools import driver

HEAD = """
import ctypes, json, os, sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p, create_string_buffer
cuda = ctypes.CDLL(sys.argv[1])
def value(function, kind, *arguments):
    found = kind()
    return getattr(cuda, function)(byref(found), *arguments) or found.value
def attribute(number, device):
    return value("cuDeviceGetAttribute", c_int, number, device)
def show(found):
    print(json.dumps(found))
"""
SECONDS = 60


@dataclass(frozen=True)
class Done:
    """What a program printed with ``show``, and its standard error."""

    shown: Any
    errors: str


def run(code: str, devices: str | None = "A100-80G,L40S", **variables: str) -> Done:
    """Run Python code with ``cuda`` as the loaded driver."""
    environment = {name: text for name, text in os.environ.items()
                   if name == CACHE.name or not name.startswith("SOFTGPU_")}
    environment |= {STRICT.name: "1"} | variables
    if devices is not None:
        environment[DEVICES.name] = devices
    done = subprocess.run([sys.executable, "-c", HEAD + code, driver.LIBRARY], env=environment, capture_output=True,
                          text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return Done(json.loads(done.stdout.splitlines()[-1]), done.stderr)
