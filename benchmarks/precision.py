"""Precision by producer: bases resolved, evaluated beside touched bytes, every exception with its reason.

Kernels are those of the fixtures, of the corpus where the reference material is there, and of every compiler that is
installed. ``--write`` also stores the page ``docs/precision.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from _common import ROOT, Row, report
from _precision import REASONS, Group, total

from tests.launches.catalog import corpus_kernels, fixture_kernels
from tests.launches.registry import KernelLaunches
from tests.producers import compiled_kernels

TITLES = {
    "nvcc": "nvcc", "nvrtc": "NVRTC", "tinygrad": "tinygrad's renderer", "triton": "Triton", "numba": "numba-cuda",
    "hand": "written by hand",
}
ORIGINS = {"corpus": "corpus", "fixtures": "fixtures", "compiled": "compiled here"}


def measure(kernels: Iterable[KernelLaunches], launches: int) -> list[Group]:
    """Groups by origin and producer, in the order of the kernels."""
    groups: dict[str, Group] = {}
    for kernel in kernels:
        title = f"{ORIGINS[kernel.origin]}, {TITLES[kernel.producer]}"
        groups.setdefault(title, Group(title)).add(kernel, launches)
    return list(groups.values())


def table(groups: list[Group]) -> str:
    """One line a group. Ratios are over kernels without data-dependent indices."""
    lines = [
        "| source, producer | kernels | launches | accesses | base resolved | reads | writes | reads, gaps left out "
        "| writes, gaps left out | equal to the byte |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for group in [*groups, total(groups)]:
        ratios = [f"{group.ratio(kind):.4f}" for kind in "RW"] + [f"{group.tightness(kind):.4f}" for kind in "RW"]
        lines.append(
            f"| {group.title} | {group.kernels} | {group.launches} | {group.resolved + group.unresolved} "
            f"| {group.base_share():.2f} % | {' | '.join(ratios)} | {group.equal} of {len(group.measured)} |")
    return "\n".join(lines)


def exceptions(groups: list[Group], missing: dict[str, str]) -> str:
    """Every kernel that is opaque, refused or wider than what it touches, and every producer that is not here."""
    lines = ["| kernel | what | reason |", "| --- | --- | --- |"]
    for group in groups:
        lines += [f"| {name} | not run by the interpreter | {reason} |" for name, reason in group.refused.items()]
        lines += [f"| {name} | opaque | {reason} |" for name, reason in group.opaque.items()]
        for name, extent in group.wider.items():
            what = f"{'reads' if extent.kind == 'R' else 'writes'} of {extent.allocation}: evaluated " \
                   f"{extent.evaluated}, touched {extent.touched}"
            lines.append(f"| {name} | {what} | {REASONS.get(name, 'not explained')} |")
    lines += [f"| kernels by {producer} | not compiled | {reason} |" for producer, reason in missing.items()]
    return "\n".join(lines)


def page(groups: list[Group], missing: dict[str, str], launches: int) -> str:
    """The page for the docs."""
    return f"""# Precision of the access programs

Made by `python3 build.py bench --clients precision --write`: up to {launches} random launches of every kernel are run
in the reference interpreter, which logs each access, and evaluated. "Reads" and "writes" are Σ evaluated bytes /
Σ bytes of the hull really accessed (from the first to the last byte of each allocation), over kernels whose addresses
do not depend on what memory holds; below 1 where ranges have gaps that a hull has not. "Gaps left out" compares with
the bytes really touched instead. "Base resolved" leaves out accesses through pointers that were loaded from memory.
"Equal to the byte": in every launch the ranges begin and end with the bytes touched.

{table(groups)}

## Exceptions

{exceptions(groups, missing)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--launches", type=int, default=8, help="launches of each kernel (default 8)")
    parser.add_argument("--write", action="store_true", help="also write docs/precision.md")
    options = parser.parse_args()
    compiled, missing = compiled_kernels()
    groups = measure([*corpus_kernels(), *fixture_kernels(), *compiled], options.launches)
    whole = total(groups)
    text = page(groups, missing, options.launches)
    if options.write:
        (ROOT / "docs" / "precision.md").write_text(text)
    if not options.json:
        print(text)
    rows = [
        Row("violations", len(whole.violations), "", 0),
        Row("base resolved", whole.base_share(), "%", 99.5, at_least=True),
        Row("evaluated over touched hulls, reads", whole.ratio("R"), "", 1.05),
        Row("evaluated over touched hulls, writes", whole.ratio("W"), "", 1.05),
        Row("kernels wider than touched without a known reason",
            sum(name not in REASONS for group in groups for name in group.wider), "", 0),
    ]
    for violation in whole.violations[:20]:
        print(violation, file=sys.stderr)
    return report("precision", rows, options.json)


if __name__ == "__main__":
    sys.exit(main())
