"""Access programs kept on disk by the content of the PTX text, so that a module is analysed once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import cache
from pathlib import Path

from ptxparse.analysis import analyze_kernel
from ptxparse.codec import ProgramFormatError, program_from_plain, program_to_json
from ptxparse.parser import parse
from ptxparse.program import VERSION, AccessProgram


class ProgramCache:
    """A folder of analysed modules. Entries of another version, or damaged ones, are made anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def programs(self, text: str, path: str = "") -> list[AccessProgram]:
        """The access programs of a PTX text, in file order. Raises ``PtxError`` as the parser does."""
        entry = self.folder / f"{content_hash(text)}.{analysis_version()}.json"
        found = self._read(entry)
        if found is None:
            module = parse(text, path)
            found = [analyze_kernel(module, kernel) for kernel in module.entries]
            self._write(entry, found)
        return found

    def _read(self, entry: Path) -> list[AccessProgram] | None:
        try:
            stored = json.loads(entry.read_text(encoding="utf-8"))
            return [program_from_plain(plain) for plain in stored] if isinstance(stored, list) else None
        except (OSError, ValueError, TypeError, RecursionError, ProgramFormatError):
            return None

    def _write(self, entry: Path, programs: list[AccessProgram]) -> None:
        """Written beside and renamed, so that a reader never sees half an entry."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".new-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"[{','.join(map(program_to_json, programs))}]")
        os.replace(name, entry)


@cache
def analysis_version() -> str:
    """The version of stored programs and a hash of the code that makes them: what other code made is made anew."""
    code = hashlib.sha256()
    folder = Path(__file__).parent
    for file in sorted(folder.rglob("*.py")):
        code.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return f"v{VERSION}-{code.hexdigest()[:16]}"


def content_hash(text: str) -> str:
    """SHA-256 of a PTX text, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
