"""The functions that programs call: one for every function of the list, with its parameters, which goes on to the
driver's own, ``soft_`` before its symbol. What the driver calls itself does not come by here."""

from __future__ import annotations

import re

from tessera.driver_api import Function, functions

OWN = "soft_"
_PARAMETER = re.compile(r"(.*?)(\w+)")


def renamed() -> str:
    """A header, to be read after ``cuda.h``, that gives the functions of the driver's files their own symbols."""
    lines = []
    for function in functions():
        own = OWN + function.symbol
        if function.header == "cuda":
            lines.append(f"extern __typeof({function.symbol}) {own};")
        lines += [f"#undef {function.symbol}", f"#define {function.symbol} {own}"]
    return "\n".join(lines) + "\n"


def parameters(function: Function) -> list[tuple[str, str]]:
    """Type and name of each parameter."""
    found = []
    for text in function.parameters.split(","):
        match = _PARAMETER.fullmatch(text.strip())
        assert match is not None, f"{function.symbol}: {text}"
        if match[2] != "void":
            found.append((match[1].strip(), match[2]))
    return found


def wrappers() -> str:
    """A C file with all of them. Where NVIDIA's header declares a function, the compiler compares."""
    lines = ['#include "wrappers.h"']
    for function in functions():
        names = ", ".join([name for _, name in parameters(function)])
        lines += [
            f"CUresult {OWN}{function.symbol}({function.parameters});",
            f"EXPORTED CUresult {function.symbol}({function.parameters}) {{ return {OWN}{function.symbol}({names}); }}",
        ]
    return "\n".join(lines) + "\n"
