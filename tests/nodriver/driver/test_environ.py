"""``softgpu.environment``: programs that run in it find the software driver, and the machine they were promised."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import softgpu
from tessera import environment as variables
from tessera import real_gpus
from tessera.cards import GIB, card_named
from tessera.errors import TesseraError, UsageError
from tessera.fleet import FleetError, parse_fleet
from tests.material import ROOT
from tools import driver

DEVICES = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
count, memory = ctypes.c_int(), ctypes.c_size_t()
cuda.cuDeviceGetCount(ctypes.byref(count))
found = []
for device in range(count.value):
    name = ctypes.create_string_buffer(100)
    cuda.cuDeviceGetName(name, 100, device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    found.append([name.value.decode(), memory.value])
print(json.dumps(found))
"""


def told(environment: dict[str, str]) -> Any:
    """What a program in that environment is told of its devices."""
    done = subprocess.run([sys.executable, "-c", DEVICES], env=environment, capture_output=True, text=True, check=False,
                          timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_programs_find_the_driver_and_its_devices(tmp_path: Path) -> None:
    big, small = ["NVIDIA A100 80GB PCIe", 24 * GIB], ["Tesla T4", 16 * GIB]
    file = tmp_path / "fleet.toml"
    file.write_text("[[gpu]]\ncard = 'A100'\nmemory_gib = 24\n[[gpu]]\ncard = 'T4'\n")
    assert told(softgpu.environment(["A100:memory_gib=24", card_named("T4")])) == [big, small]
    assert told(softgpu.environment(f"@{file}")) == [big, small]
    assert told(softgpu.environment(parse_fleet(f"@{file}").rotated(1))) == [small, big]
    inner = softgpu.environment(base=softgpu.environment("T4", base=os.environ))
    assert told(inner) == [small], "what is not said stays"


def test_the_software_driver_is_no_real_one_and_says_what_a_real_one_would() -> None:
    command = [sys.executable, "-m", "tessera.real_gpus", "libcuda.so.1"]
    done = subprocess.run(command, env=softgpu.environment("T4,L4;from=T4:to=L4:bandwidth_gb_s=1:peer=true"), cwd=ROOT,
                          capture_output=True, text=True, check=True, timeout=60)
    said = json.loads(done.stdout)
    assert (said["failed"], said["software"], said["version"]) == (None, True, 13000)
    assert [[g["name"], g["major"], g["minor"], g["memory"], g["sms"], g["peers"]] for g in said["gpus"]] == [
        ["Tesla T4", 7, 5, 16 * GIB, 40, [1]], ["NVIDIA L4", 8, 9, 24 * GIB, 58, [0]],
    ]
    assert real_gpus.find(str(driver.LIBRARY)) is None


def test_what_the_driver_is_told() -> None:
    base = {"PATH": "/bin", "LD_LIBRARY_PATH": "/a::/b:"}
    plain = softgpu.environment(base=base)
    assert base == {"PATH": "/bin", "LD_LIBRARY_PATH": "/a::/b:"}
    folders = plain["LD_LIBRARY_PATH"].split(":")
    assert folders[:3] == [str(driver.LIBRARY.parent), "/a", "/b"] and plain["PATH"] == "/bin"
    assert all(any(Path(folder).glob("libnvrtc-builtins.so.*")) for folder in folders[3:])
    assert not {v.name for v in variables.VARIABLES} & set(plain)
    assert softgpu.environment(base=plain) == plain, "one in which programs find it already"
    full = softgpu.environment(
        "L4,L4", machine="m", strict=True, clock=2.5, driver_version=12040, instrument="i.toml", cache=Path("/c"),
        decree="d", rounding=False, base=base,
    )  # fmt: skip
    assert {v.name: full[v.name] for v in variables.VARIABLES if v.name in full} == {
        variables.DEVICES.name: "L4,L4", variables.MACHINE.name: "m", variables.STRICT.name: "1",
        variables.CLOCK.name: "modelled:2.5", variables.DRIVER_VERSION.name: "12040", variables.ROUNDING.name: "0",
        variables.INSTRUMENT.name: os.path.abspath("i.toml"), variables.CACHE.name: "/c",
        variables.DECREE.name: os.path.abspath("d"),
    }  # fmt: skip
    assert softgpu.environment(clock="off", base=base)[variables.CLOCK.name] == "off"


def test_where_clients_look(tmp_path: Path) -> None:
    """Triton wants folders and programs, tinygrad takes a file in CUDA_PATH for the driver."""
    library = tmp_path / "libcuda.so.1"
    library.touch()
    found = softgpu.environment(base={"CUDA_PATH": str(library)})
    assert found["TRITON_LIBCUDA_PATH"] == str(driver.LIBRARY.parent)
    assert Path(found["CUDA_PATH"], "include", "cuda.h").exists(), "of the wheel that the driver was compiled with"
    assert softgpu.environment(base={"CUDA_PATH": str(tmp_path)})["CUDA_PATH"] == str(tmp_path)
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        assert os.access(found.get(name, library.parent), os.R_OK)


@pytest.mark.parametrize(("arguments", "kind", "message"), [
    ({"devices": "T5"}, FleetError, "no card is named 'T5'"),
    ({"devices": []}, FleetError, "GPU 0: no card is named"),
    ({"devices": ["cuda:0"]}, FleetError, "'cuda:0': the software driver has no real GPUs"),
    ({"clock": 0}, UsageError, "clock 0 must be 'off', or a number above 0"),
    ({"clock": "fast"}, UsageError, "clock 'fast' must be 'off'"),
    ({"driver_version": 12}, UsageError, "driver_version 12 is no version as in 12040"),
])
def test_what_cannot_be(arguments: dict[str, Any], kind: type[TesseraError], message: str) -> None:
    with pytest.raises(kind, match=message):
        softgpu.environment(**arguments)


def test_the_package_is_light() -> None:
    """Nothing but the standard library, and little of that: who only parses PTX imports it too."""
    code = "import sys, softgpu; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.split(".")[0] in ("tessera", "softgpu", "numpy", "tomllib")}
    assert loaded == {"softgpu", "softgpu.environ", "tessera", "tessera.environment", "tessera.errors"}
