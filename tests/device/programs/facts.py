"""What the driver says of itself and of its devices.

    python -m tests.device.programs.facts
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cuda.bindings import driver

from tests.device.programs.device import call, main


def attributes(device: Any) -> dict[str, int]:
    """All attributes that the driver knows, by name without its beginning."""
    found = {}
    for attribute in driver.CUdevice_attribute:
        result, value = driver.cuDeviceGetAttribute(attribute, device)
        if result == driver.CUresult.CUDA_SUCCESS:
            found[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")] = value
    return found


def device(number: int, count: int) -> dict[str, Any]:
    handle = call(driver.cuDeviceGet(number))
    identity = call(driver.cuDeviceGetUuid(handle)).bytes
    others = [call(driver.cuDeviceGet(other)) for other in range(count) if other != number]
    return {
        "name": call(driver.cuDeviceGetName(256, handle)).split(b"\0")[0].decode(), "uuid": identity.hex(),
        "bus": call(driver.cuDeviceGetPCIBusId(20, handle)).split(b"\0")[0].decode(),
        "memory": call(driver.cuDeviceTotalMem(handle)), "attributes": attributes(handle),
        "peers": [int(other) for other in others if call(driver.cuDeviceCanAccessPeer(handle, other))],
    }  # fmt: skip


def libraries() -> list[str]:
    """The files with CUDA in their names that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split(maxsplit=5)[5] for line in lines if re.search(r"/lib(cuda|nvidia)[^/]*$", line)})


def run() -> dict[str, Any]:
    call(driver.cuInit(0))
    count = call(driver.cuDeviceGetCount())
    return {"version": call(driver.cuDriverGetVersion()), "libraries": libraries(),
            "devices": [device(number, count) for number in range(count)]}


if __name__ == "__main__":
    main(run)
