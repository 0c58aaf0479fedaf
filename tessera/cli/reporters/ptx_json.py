"""``tessera ptx --json``: one object, described by ``docs/schema/ptx.json``."""

from __future__ import annotations

import json
import math
from typing import Any, TextIO

from ptxparse.api import Amount
from ptxparse.errors import PtxError
from ptxparse.model import Module
from ptxparse.program import Access
from tessera.cli.examination import FileFindings, KernelFindings, LaunchFindings, access_ranges
from tessera.cli.reporters.formula import Formulas
from tessera.errors import TesseraError

SCHEMA = "tessera.ptx"
VERSION = 1

Json = dict[str, Any]


def write(files: list[FileFindings], out: TextIO) -> None:
    """Write all files as one object, on several lines."""
    json.dump(document(files), out, indent=1, ensure_ascii=False)
    out.write("\n")


def document(files: list[FileFindings]) -> Json:
    """The whole output as plain data."""
    return {"schema": SCHEMA, "version": VERSION, "files": [file_object(file) for file in files]}


def file_object(file: FileFindings) -> Json:
    return {
        "path": file.path,
        "error": error_object(file.error) if file.error else None,
        "module": module_object(file.module) if file.module else None,
        "kernels": [kernel_object(kernel) for kernel in file.kernels],
    }


def error_object(error: TesseraError) -> Json:
    """The message, and the place in the text if it has one."""
    place = {"line": error.line, "column": error.column} if isinstance(error, PtxError) else {}
    return {"message": str(error), **place}


def module_object(module: Module) -> Json:
    return {
        "ptx_version": ".".join(map(str, module.version)),
        "targets": list(module.targets),
        "address_size": module.address_size,
        "variables": [
            {"name": v.name, "space": v.space, "type": v.type, "size": v.size, "line": v.line}
            for v in module.variables
        ],
        "notes": [note._asdict() for note in module.notes],
    }


def kernel_object(kernel: KernelFindings) -> Json:
    program = kernel.program
    return {
        "name": program.kernel,
        "line": program.line,
        "params": [parameter._asdict() for parameter in program.parameters],
        "accesses": [row for access in program.accesses for row in access_objects(kernel, access)],
        "opaque": program.opaque,
        "problems": [{"reason": reason, "line": line} for reason, line in program.problems],
        "pinned": [{"reason": reason, "line": line} for reason, line in program.pinned],
        "escapes": [{"offset": word, "line": line} for word, line in program.escapes],
        "deterministic": program.deterministic,
        "device_invariant": program.device_invariant,
        "counts": program.counts,
        "launch": launch_object(kernel.launch) if kernel.launch else None,
    }


def access_objects(kernel: KernelFindings, access: Access) -> list[Json]:
    """One row; with a launch one for each allocation that the access touches."""
    formulas = Formulas(kernel.program, full_names=True)
    row = {
        "kind": access.kind,
        "base": formulas.bases(access.bases),
        "offset": formulas.offset(access),
        "spans": [list(span) for span in access.spans],
        "conditions": formulas.conditions(access.guards),
        "certain": access.certain,
        "line": access.lines[0],
        "lines": list(access.lines),
        "instructions": access.instructions,
        "range": None,
        "exact": None,
    }
    if kernel.launch is None:
        return [row]
    return [
        {**row, "range": {"allocation": str(r.allocation), "lo": r.lo, "hi": r.hi}, "exact": r.exact}
        for r in access_ranges(kernel, access)
    ] or [row]


def launch_object(launch: LaunchFindings) -> Json:
    """The launch as it was laid out and its ranges, ``lo`` and ``hi`` in bytes from the start of the allocation."""
    written = launch.bound.launch
    evaluation = launch.evaluation
    return {
        "grid": list(written.grid),
        "block": list(written.block),
        "shared": written.shared,
        "params": launch.bound.params.hex(),
        "allocations": [a._asdict() for a in launch.allocations],
        "opaque": evaluation.opaque,
        "pinned": list(evaluation.pinned),
        "ranges": [{**r._asdict(), "allocation": str(r.allocation)} for r in evaluation.ranges],
        "counts": {name: amount_object(amount) for name, amount in launch.counts.items()},
    }


def amount_object(amount: Amount) -> Json:
    """An amount of work with its bounds; ``high`` is null where there is none."""
    return {**amount._asdict(), "high": None if math.isinf(amount.high) else amount.high}
