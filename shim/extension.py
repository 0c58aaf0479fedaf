"""The C source of ``shim._wire``, by which Python reads the ring and knows the structures of records.

    python -m shim.extension FILE

It is made by cffi from ``wire.h`` and ``reader.h``, which are its declarations too. For building only."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEADERS = tuple([Path(__file__).with_name(name) for name in ("wire.h", "reader.h")])
_CONSTANT = re.compile(r"#define \w+ (0x[0-9A-Fa-f]+|\d+)\b")


def declarations() -> str:
    """The headers as cffi reads them: of the preprocessor's lines only constants."""
    lines = [line for header in HEADERS for line in header.read_text(encoding="utf-8").splitlines()]
    return "\n".join([line for line in lines if not line.startswith("#") or _CONSTANT.match(line)])


def write(source: Path) -> None:
    """Write the C source, which a C compiler makes an extension of for any Python 3."""
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(declarations())
    ffi.set_source("shim._wire", "\n".join([f'#include "{header.name}"' for header in HEADERS]), py_limited_api=True)
    source.parent.mkdir(parents=True, exist_ok=True)
    ffi.emit_c_code(str(source))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
