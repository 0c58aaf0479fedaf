"""The functions that programs call: one for every function of the list, with its parameters, which goes on to the
driver's own, ``soft_`` before its symbol. What the driver calls itself does not come by here."""

from __future__ import annotations

import re

from tessera.driver_api import Function, functions

OWN = "soft_"
STRUCTURES = frozenset({"CUipcEventHandle_v1", "CUipcMemHandle_v1", "CUmemLocation_v1", "CUeglFrame_v1"})
"""Those that are passed by value."""

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
    table, bodies = [], []
    for number, function in enumerate(functions()):
        given = parameters(function)
        listed = ", ".join([f'"{name}"' for _, name in given]) or "0"
        table.append(f'{{"{function.symbol}", "{function.name}", (const char *const[]){{{listed}}}, {len(given)}}},')
        names = f"({', '.join([name for _, name in given])})"
        own, looked = [before + function.symbol for before in (OWN, "looked_")]
        values = ", ".join([_value(kind, name) for kind, name in given]) or "NO_VALUE"
        bodies += [
            f"CUresult {own}({function.parameters});",
            f"LOOKED_AT CUresult {looked}({function.parameters}) {{ LOOK({number}, {own}{names}, {values}); }}",
            f"EXPORTED CUresult {function.symbol}({function.parameters}) {{ GO_ON({own}{names}, {looked}{names}); }}",
        ]
    lines = ['#include "wrappers.h"', "const struct exported instrumented[] = {", *table, "};",
             f"const unsigned instrumented_count = {len(table)};", *bodies]
    return "\n".join(lines) + "\n"


def _value(kind: str, name: str) -> str:
    """An argument for the log. Of most kinds the compiler knows what they are."""
    if kind in STRUCTURES:
        return f"BYTES_OF({name})"
    if kind in ("CUdeviceptr *", "CUdeviceptr_v2 *"):
        return f"ADDRESS_ANSWER({name})"
    if kind.startswith("CUdeviceptr") and "*" not in kind:
        return f"ADDRESS_OF({name})"
    return f"VALUE({name})"
