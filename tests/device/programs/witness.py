"""A program under the preload library, and what its records show: which functions they come of.

    python -m tests.device.programs.witness DRIVER REPORT PROGRAM [ARGUMENT...]

The exit status is the program's.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from shim import tails
from shim.listen import Client
from shim.wire import Kind, Record, lib, records
from tessera.cli.under_shim import Wanted, run_program
from tessera.driver_api import functions

WAYS = {lib.WIRE_BY_DLSYM: "dlsym", lib.WIRE_BY_PROC_ADDRESS: "cuGetProcAddress"}
IMAGES = {lib.WIRE_IMAGE_PTX: "PTX", lib.WIRE_IMAGE_CUBIN: "cubin", lib.WIRE_IMAGE_FATBIN: "fatbin"}
COUNTED = (Kind.LAUNCH, Kind.CALL, Kind.COPY, Kind.MEMORY, Kind.GRAPH_LAUNCH, Kind.OTHER_WORK)
"""Of these it is counted which functions they come of; of modules and kernels there is more to say."""


class Witness:
    """A sink. ``by``: how many records of a kind come of a function."""

    def __init__(self) -> None:
        self.by: dict[str, Counter[str]] = defaultdict(Counter)
        self.doors: dict[str, list[str]] = defaultdict(list)
        self.modules: list[dict[str, Any]] = []
        self.kernels: list[dict[str, Any]] = []
        self.troubles: list[str] = []
        self.clients = 0

    def begin(self, client: Client) -> None:
        self.clients += 1

    def end(self, client: Client, trouble: str | None) -> None:
        if trouble:
            self.troubles.append(trouble)

    def batch(self, client: Client, batch: Any, data: memoryview) -> None:
        for record in records(data):
            self.add(record, functions()[record.function].symbol)

    def add(self, record: Record, function: str) -> None:
        body = record.body
        if record.kind in COUNTED:
            self.by[record.kind.name.lower()][function] += 1
        elif record.kind is Kind.DOOR:
            self.doors[WAYS[body.how]].append(tails.name(record) or function)
        elif record.kind is Kind.MODULE:
            self.modules.append({"function": function, "image": IMAGES.get(body.image, "unknown"), "bytes": body.bytes})
        elif record.kind is Kind.FUNCTION:
            parameters = [list(one) for one in tails.function_parameters(record)] if body.known else None
            self.kernels.append({"name": tails.name(record), "function": function, "parameters": parameters,
                                 "module_known": bool(body.module)})
        elif record.kind is Kind.EPOCH:
            self.troubles.append(f"{body.lost} records were lost")

    def report(self) -> dict[str, Any]:
        return {"clients": self.clients, "troubles": self.troubles, "records_by_function": self.by,
                "doors": self.doors, "modules": self.modules, "kernels": self.kernels}


def main() -> int:
    driver, report, *command = sys.argv[1:]
    witness = Witness()
    status = run_program(Wanted(tuple(command), driver=Path(driver)), sys.stderr, [witness])
    Path(report).write_text(json.dumps(witness.report()))
    return status


if __name__ == "__main__":
    sys.exit(main())
