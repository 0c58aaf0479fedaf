"""Modules, libraries and kernels of a replay, and which words of a kernel's parameters are addresses."""

from __future__ import annotations

import ctypes
import sqlite3
from typing import Any

from orchestrator.traces.payloads import ContentError
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.driver import CallFailed, call, cuda
from orchestrator.traces.replay.machine import Machine
from orchestrator.traces.replay.report import Report
from ptxparse.api import Module, analyze_kernel, parse
from ptxparse.errors import PtxError


class Code:
    """Loads images by their contents; what a program linked is linked again, as the result fits one GPU only."""

    def __init__(self, trace: Trace, machine: Machine, report: Report) -> None:
        self._trace, self._machine, self._report = trace, machine, report
        self._modules: dict[int, Any] = {}
        self._kernels: dict[int, Any] = {}
        self._rows: dict[int, sqlite3.Row | None] = {}
        self._texts: dict[bytes, Module | None] = {}
        self._words: dict[int, frozenset[int] | None] = {}

    def load(self, row: sqlite3.Row) -> None:
        """A row of the table ``module``."""
        if row["context"] is not None or not row["library"]:
            self._machine.use(row["context"])
        if row["library_of"] is not None:
            library = self._modules.get(row["library_of"])
            if library is not None:
                self._modules[row["id"]] = call(cuda.cuLibraryGetModule(library), "cuLibraryGetModule")
            return
        try:
            image = self._image(row["content"])
        except ContentError as error:
            self._report.skip("a module whose image is not in the trace")
            self._report.notes[str(error)] += 1
            return
        except CallFailed as failed:
            self._report.skip(f"a module that cannot be linked: {failed}")
            return
        held = ctypes.create_string_buffer(image, len(image) + 1)
        try:
            if row["library"]:
                made = cuda.cuLibraryLoadData(ctypes.addressof(held), [], [], 0, [], [], 0)
                self._modules[row["id"]] = call(made, "cuLibraryLoadData")
            else:
                self._modules[row["id"]] = call(cuda.cuModuleLoadData(ctypes.addressof(held)), "cuModuleLoadData")
        except CallFailed as failed:
            self._report.skip(f"a module that cannot be loaded: {failed}")

    def unload(self, number: int) -> None:
        made, row = self._modules.pop(number, None), self._row("module", number)
        if made is None or row is None or row["library_of"] is not None:
            return
        if row["library"]:
            call(cuda.cuLibraryUnload(made), "cuLibraryUnload")
        else:
            self._machine.use(row["context"])
            call(cuda.cuModuleUnload(made), "cuModuleUnload")

    def forget(self, sequence: int, client: int) -> None:
        """Modules that ended with their context."""
        for row in self._trace.rows("SELECT id FROM module WHERE client = ? AND died = ?", client, sequence):
            self._modules.pop(row["id"], None)

    def kernel(self, number: int) -> Any | None:
        """What can be launched, by its name; None if its module is not there."""
        if number not in self._kernels:
            row = self.kernel_row(number)
            self._kernels[number] = self._find(row) if row else None
        return self._kernels[number]

    def kernel_row(self, number: int) -> sqlite3.Row | None:
        return self._row("kernel", number)

    def variable(self, row: sqlite3.Row) -> int | None:
        """Where a variable of a module is now: a row of ``memory``."""
        module, owner = self._modules.get(row["owner"]), self._row("module", row["owner"] or 0)
        if module is None or owner is None:
            self._report.skip("a variable of a module that is not there")
            return None
        self._machine.use(row["context"] if row["context"] is not None else owner["context"])
        name = row["name"].encode()
        if owner["library"]:
            address, _ = call(cuda.cuLibraryGetGlobal(module, name), "cuLibraryGetGlobal")
        else:
            address, _ = call(cuda.cuModuleGetGlobal(module, name), "cuModuleGetGlobal")
        return int(address)

    def address_words(self, number: int) -> frozenset[int] | None:
        """Offsets of the words of a kernel's parameters that it uses as addresses; None if nobody can tell."""
        if number not in self._words:
            self._words[number] = self._analysed(number)
        return self._words[number]

    def _analysed(self, number: int) -> frozenset[int] | None:
        row = self.kernel_row(number)
        owner = self._row("module", row["module"]) if row and row["module"] else None
        if row is None or owner is None or owner["content"] is None:
            return None
        module = self._text(owner["content"])
        if module is None:
            return None
        found = next((entry for entry in module.entries if entry.name == row["name"]), None)
        if found is None:
            return None
        program = analyze_kernel(module, found)
        if program.opaque is not None:
            return None
        bases = {base.word for access in program.accesses for base in access.bases if base.word >= 0}
        return frozenset(bases | {word for word, _ in program.escapes})

    def _text(self, content: bytes) -> Module | None:
        """The PTX of an image, parsed; of linked ones that of the only input."""
        if content not in self._texts:
            self._texts[content] = None
            inputs = self._inputs(content)
            source = inputs[0]["content"] if len(inputs) == 1 else content
            try:
                text = self._trace.content(source)
                if b".version" in text[:4096]:
                    self._texts[content] = parse(text.rstrip(b"\0").decode(errors="replace"))
            except (ContentError, PtxError):
                pass
        return self._texts[content]

    def _find(self, row: sqlite3.Row) -> Any | None:
        module, owner = self._modules.get(row["module"]), self._row("module", row["module"] or 0)
        if module is None or owner is None or row["name"] is None:
            return None
        name = row["name"].encode()
        if owner["library"]:
            return call(cuda.cuLibraryGetKernel(module, name), "cuLibraryGetKernel")
        self._machine.use(owner["context"])
        return call(cuda.cuModuleGetFunction(module, name), "cuModuleGetFunction")

    def _image(self, content: bytes | None) -> bytes:
        if content is None:
            raise ContentError("the image of a module has no name in the trace")
        inputs = self._inputs(content)
        return self._linked(inputs) if inputs else self._trace.content(content)

    def _inputs(self, content: bytes) -> list[sqlite3.Row]:
        """What a program linked to get an image."""
        link = self._trace.row("SELECT id FROM link WHERE content = ? ORDER BY id LIMIT 1", content)
        if link is None:
            return []
        return list(self._trace.rows("SELECT * FROM link_input WHERE link = ? ORDER BY position", link["id"]))

    def _linked(self, inputs: list[sqlite3.Row]) -> bytes:
        self._machine.use(None)
        state = call(cuda.cuLinkCreate(0, [], []), "cuLinkCreate")
        try:
            for one in inputs:
                data = self._trace.content(one["content"])
                kind = cuda.CUjitInputType(one["type"])
                size = len(data) + (kind == cuda.CUjitInputType.CU_JIT_INPUT_PTX and not data.endswith(b"\0"))
                held = ctypes.create_string_buffer(data, len(data) + 1)
                added = cuda.cuLinkAddData(state, kind, ctypes.addressof(held), size, one["name"].encode(), 0, [], [])
                call(added, "cuLinkAddData")
            address, size = call(cuda.cuLinkComplete(state), "cuLinkComplete")
            return ctypes.string_at(int(address), int(size))
        finally:
            cuda.cuLinkDestroy(state)

    def _row(self, table: str, number: int) -> sqlite3.Row | None:
        if number not in self._rows:
            self._rows[number] = self._trace.row(f"SELECT * FROM {table} WHERE id = ?", number)
        return self._rows[number]
