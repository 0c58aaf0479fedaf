"""Writes ``functions.tsv`` anew from the headers of a CUDA toolkit; statuses and kinds stay. A function that
is new is refused by the software driver and noted by the preloaded library.

    .venv/bin/python -m tessera.driver_api.headers FOLDER_WITH_cuda.h

``cuda*Typedefs.h`` have a typedef for every form of a function, named for the CUDA version that brought it
(``PFN_cuMemAlloc_v3020``). The k-th oldest form of a name is exported as ``name`` for k = 1, else as ``name_vk``; the
form with a default stream in each thread under the symbol of the form of its day, with ``_ptsz`` or ``_ptds``. That
this holds for all that ``cuda.h`` declares is tested.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from tessera.driver_api import COLUMNS, FILE, NOTE, REFUSED, functions

HEADERS = ("cuda", "cudaGL", "cudaEGL", "cudaVDPAU", "cudaProfiler")
NOT_ON_LINUX = frozenset({"cuWGLGetDevice"})

_TYPEDEF = re.compile(
    r"typedef\s+CUresult\s*\(\s*CUDAAPI\s*\*\s*PFN_(cu\w+?)_v(\d+)(?:_(pt[sd][sz]))?\s*\)\s*\((.*?)\)\s*;", re.DOTALL)

Row = tuple[str, str, int, str, str, str]


def rows(include: Path) -> list[Row]:
    """Symbol, name, since, stream, header and parameters of every function, sorted by symbol."""
    found: list[Row] = []
    for header in HEADERS:
        text = (include / f"{header}Typedefs.h").read_text(encoding="utf-8")
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        forms: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
        for name, since, stream, parameters in _TYPEDEF.findall(text):
            if name not in NOT_ON_LINUX:
                forms[name].append((int(since), stream, " ".join(parameters.split())))
        for name, all_forms in forms.items():
            days = [since for since, stream, _ in all_forms if not stream]
            for since, stream, parameters in all_forms:
                number = sum(day <= since for day in days)
                symbol = name + (f"_v{number}" if number > 1 else "") + (f"_{stream}" if stream else "")
                found.append((symbol, name, since, stream, header, parameters))
    return sorted(found)


def main() -> int:
    """Write the list."""
    kept = {function.symbol: (function.status, function.kind) for function in functions()}
    lines = ["\t".join(COLUMNS)]
    for symbol, name, since, stream, header, parameters in rows(Path(sys.argv[1])):
        choices = kept.get(symbol, (REFUSED, NOTE))
        lines.append("\t".join([symbol, name, str(since), stream, header, *choices, parameters]))
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
