"""Operands whose value is known when code is emitted."""

from __future__ import annotations

import re

from softgpu.engine.ir import Value, bits

_INTEGER = re.compile(r"(?:splat \(i\d+ )?(-?\d+|true|false)\)?$")


def integer_of(value: Value) -> int | None:
    """The number of an integer constant that is the same in all lanes, as an unsigned one of its width; None for
    everything else."""
    found = _INTEGER.match(value.ref)
    if found:
        text = found[1]
        number = int(text == "true") if text[0] in "tf" else int(text)
        return number & ((1 << bits(value.type)) - 1)
    return 0 if value.ref == "zeroinitializer" else None
