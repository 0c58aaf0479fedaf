"""Writes the C tables of the driver into a folder.

    python -m softgpu.driver.generate FOLDER PATH_OF_cuda.h

``wrappers.c``, ``renamed.h``: the functions that programs call (``wrappers.py``). ``refused.c``: what they go on to if
nothing is implemented. ``functions.c``: what ``cuGetProcAddress`` finds. ``errors.c``: names and texts of results.
``cards.c``: the cards of ``tessera/cards.toml``. ``stand_in.s``: names alone, for the ``libcuda.so`` of wheels.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from softgpu.driver.wrappers import OWN, renamed, wrappers
from tessera.cards import Card, cards
from tessera.driver_api import REFUSED, by_name, functions

_RESULTS = re.compile(r"typedef enum cudaError_enum \{(.*?)\} CUresult;", re.DOTALL)
_RESULT = re.compile(r"^\s*(CUDA_\w+)\s*=\s*(\d+)", re.MULTILINE)


def refused() -> str:
    """Without their parameters: nothing is done with these."""
    lines = ['#include "refused.h"']
    counted = "static _Atomic unsigned called;"
    lines += [f'int {OWN}{f.symbol}(void) {{ {counted} return refuse("{f.symbol}", &called); }}'
              for f in functions() if f.status == REFUSED]
    return "\n".join(lines) + "\n"


def table() -> str:
    """Forms by name, the oldest first, each with its twin."""
    twins = {f.symbol.removesuffix(f"_{f.stream}"): f for f in functions() if f.stream}
    forms = []
    for name in sorted(by_name()):
        for form in by_name()[name]:
            if not form.stream:
                twin = twins.get(form.symbol)
                behind = f"{twin.since}, {form.symbol}, {twin.symbol}" if twin else f"0, {form.symbol}, 0"
                forms.append(f'{{"{name}", {form.since}, {behind}}},')
    lines = ['#include "functions.h"', *[f"extern void {f.symbol}(void);" for f in functions()]]
    lines += ["const struct form forms[] = {", *forms, "};", f"const unsigned form_count = {len(forms)};"]
    return "\n".join(lines) + "\n"


def results(header: str) -> list[tuple[str, int]]:
    """Names and numbers of CUresult, as ``cuda.h`` has them."""
    body = _RESULTS.search(re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL))
    assert body is not None, "cuda.h has no CUresult"
    return [(name, int(number)) for name, number in _RESULT.findall(body[1])]


def errors(header: str) -> str:
    """The text of a result is its name in words."""
    lines = ['#include "results.h"', "const struct result results[] = {"]
    for name, number in sorted(results(header), key=lambda pair: pair[1]):
        words = name.removeprefix("CUDA_").removeprefix("ERROR_").replace("_", " ").lower()
        lines.append(f'{{{number}, "{name}", "{"no error" if number == 0 else words}"}},')
    return "\n".join([*lines, "};", f"const unsigned result_count = {len(lines) - 2};"]) + "\n"


def stand_in() -> str:
    """Symbols that are there for linkers only: nothing calls them."""
    names = [f".globl {f.symbol}\n.type {f.symbol}, @function\n{f.symbol}:" for f in functions()]
    return "\n".join([".text", *names, "ud2", '.section .note.GNU-stack, "", @progbits']) + "\n"


def card_table() -> str:
    """The cards, each once for its name and once for each alias."""
    found = cards()
    lines = ['#include "cards.h"', "const struct card cards[] = {"]
    lines += [_card(card) for card in found]
    lines += ["};", "const struct card_name card_names[] = {"]
    names = [(name, index) for index, card in enumerate(found) for name in (card.name, *card.aliases)]
    lines += [f'{{"{name}", {index}}},' for name, index in names]
    return "\n".join([*lines, "};", f"const unsigned card_name_count = {len(names)};"]) + "\n"


def _card(card: Card) -> str:
    capability = card.capability
    numbers = [
        *capability.version, card.sms, card.clock_mhz * 1000, capability.threads_per_sm, capability.blocks_per_sm,
        capability.shared_per_sm, capability.shared_per_block, card.l2_bytes,
        round(card.figure("bandwidth_gb_s") * 1000), card.bus_bits, round(card.host_gb_s * 1000),
        capability.fp32_per_clock, capability.fp16_per_clock, capability.fp64_per_clock, capability.int32_per_clock,
        capability.conversions_per_clock, round(card.figure("tensor_tflops") * 1000),
    ]  # fmt: skip
    return f'{{"{card.name}", "{card.full_name}", {card.memory}ull, {", ".join(map(str, numbers))}}},'


def main() -> int:
    """Write the files."""
    folder, header = Path(sys.argv[1]), Path(sys.argv[2]).read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("renamed.h", renamed()), ("wrappers.c", wrappers()), ("refused.c", refused()),
                       ("functions.c", table()), ("errors.c", errors(header)), ("cards.c", card_table()),
                       ("stand_in.s", stand_in())):
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
